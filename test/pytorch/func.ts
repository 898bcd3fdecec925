// PyTorch's torch.func, where it is.
import { torch } from 'tensorfx'

/** The functions of torch.func that tensorfx has. */
export const func: Record<string, unknown> = { ...Reflect.get(torch, 'func') }
