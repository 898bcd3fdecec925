// tensorfx/library: operators of your own, and opcheck, which tests them. PyTorch's torch.library.
import { installCompile } from '../install/compile.ts'
import { installTensors } from '../install/tensors.ts'
import * as library from '../library/index.ts'

export { OpCheckError, customOp, defineOp, registerAutograd, registerFake } from '../library/index.ts'
export type { CustomOp, CustomOpOptions, DefineOpOptions, DefinedOp, Forward, OpCheckOptions, OpCheckReport, OpCheckTest } from '../library/index.ts'
export type { BackwardContext, BackwardOf } from '../ops/index.ts'

/** Tests whether an operator does what its declaration says. See `opcheck`. */
export const opcheck: typeof library.opcheck = (op, samples, options) => {
  installCompile()
  return library.opcheck(op, samples, options)
}

installTensors()
