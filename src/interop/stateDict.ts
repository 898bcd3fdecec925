// The tensors in files of torch.save.
import { ArgumentError } from '../errors/index.ts'
import { readTorchFile } from '../formats/torchFile.ts'
import type { TensorMaking, TorchValue } from '../formats/torchFile.ts'
import { asStrided } from '../ops/index.ts'
import { valueText } from '../protocol/index.ts'
import { Tensor, tensorFromBytes } from '../tensor/index.ts'

/** A storage is a tensor of one dimension. */
const TENSORS: TensorMaking<Tensor, Tensor> = {
  storage: (bytes, count, dtype) => tensorFromBytes(bytes.slice(), [count], dtype),
  view: (storage, { size, stride, offset }) => asStrided(storage, size, stride, offset),
}

type Value = TorchValue<object>

const isTensors = (value: unknown): value is Map<string, Tensor> =>
  value instanceof Map && value.size > 0 && [...value].every(([key, item]) => typeof key === 'string' && item instanceof Tensor)

/** What else a file holds. */
function contents(value: Value): string {
  if (value instanceof Map) return `a dict with the keys ${[...value.keys()].slice(0, 10).map(valueText).join(', ')}`
  return value instanceof Tensor ? 'one tensor' : valueText(value)
}

/** The state dict in the bytes of a file, or under `key` in a dict of several things. */
export function readStateDict(where: string, bytes: Uint8Array, key: string | null): Map<string, Tensor> {
  const value = readTorchFile(where, bytes, TENSORS)
  const found = key === null ? value : value instanceof Map ? value.get(key) : undefined
  if (found === undefined) throw new ArgumentError(`${where}: option 'key': there is no '${String(key)}' in the file; it holds ${contents(value)}.`)
  if (isTensors(found)) return found
  throw new ArgumentError(
    `${where}: expected a state dict, a dict of tensors by name, but the file holds ${contents(found)}.${found instanceof Map ? " If one of them is the state dict, name it: { key: 'model' }." : ''}`,
  )
}
