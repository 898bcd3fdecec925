// nn.functional as users get it: it explains names that it does not have.
import { explainUnknownNames } from '../protocol/index.ts'
import * as functions from './functional.ts'

/** What layers compute, as functions. PyTorch's `torch.nn.functional`. */
export const functional: typeof functions = /* @__PURE__ */ explainUnknownNames(
  { ...functions },
  { owner: 'nn.functional', known: () => Object.keys(functions), instead: new Map() },
)
