// PyTorch's torch.func, torch.autograd.functional and torch.utils.checkpoint, where they are.
import { checkpoint, functional } from 'tensorfx/autograd'
import * as func from 'tensorfx/func'

/** By PyTorch's path. */
export const elsewhere: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ['func', func],
  ['autograd.functional', functional],
  ['utils', { checkpoint: { checkpoint } }],
])
