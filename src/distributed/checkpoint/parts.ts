// Tensors as files hold them: in the parts that ranks have.
import { noGrad } from '../../autograd/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { readSafetensors } from '../../interop/safetensors.ts'
import { Tensor } from '../../tensor/index.ts'
import { ShardedTensor, overlap } from '../shardedTensor.ts'
import type { CheckpointFolder } from './folder.ts'
import { rankFile } from './manifest.ts'
import type { Part, StoredTensor } from './manifest.ts'
import type { OptimizerParts, StateTensor } from './state.ts'
import type { Team } from './team.ts'

/** A part that this rank writes: of which tensor, and where it lies in it. */
export interface OwnPart extends Omit<Part, 'rank'> {
  readonly name: string
  readonly tensor: Tensor
}

/** The name of a tensor of the model in files. */
export const modelName = (name: string): string => `model.${name}`

/** The tensors of a checkpoint under one name each, in the same order on all ranks. */
export function named(model: ReadonlyMap<string, StateTensor>, optimizer: OptimizerParts | null): Map<string, StateTensor> {
  const all = new Map<string, StateTensor>()
  for (const [name, tensor] of model) all.set(modelName(name), tensor)
  for (const [name, values] of optimizer?.tensors ?? [])
    for (const key of [...values.keys()].toSorted()) {
      const tensor = values.get(key)
      if (tensor !== undefined) all.set(optimizerName(name, key), tensor)
    }
  return all
}

export const optimizerName = (name: string, key: string): string => `optimizer.${name}.${key}`

/** What this rank writes: its parts, and its share of the tensors that all ranks have. */
export function ownParts(all: ReadonlyMap<string, StateTensor>, team: Team): OwnPart[] {
  return [...all].flatMap(([name, value], i) => {
    if (value instanceof ShardedTensor)
      return value.localShards.map(({ tensor, offsets }) => ({ name, key: `${name}@${offsets.join(',')}`, offsets, sizes: tensor.sizes, tensor }))
    return i % team.size === team.rank ? [{ name, key: name, offsets: value.sizes.map(() => 0), sizes: value.sizes, tensor: value }] : []
  })
}

/** The parts of each tensor in all files, by name. Replicas of a part count once. */
export function partsByName(reports: readonly (readonly (Omit<Part, 'rank'> & { readonly name: string })[])[]): ReadonlyMap<string, readonly Part[]> {
  const found = new Map<string, Map<string, Part>>()
  for (const [rank, parts] of reports.entries())
    for (const { name, key, offsets, sizes } of parts) {
      const known = found.get(name) ?? new Map<string, Part>()
      found.set(name, known)
      if (!known.has(key)) known.set(key, { rank, key, offsets, sizes })
    }
  return new Map([...found].map(([name, parts]) => [name, [...parts.values()]]))
}

/** Reads tensors from the parts in all files. */
export class PartsReader {
  readonly #where: string
  readonly #files: CheckpointFolder
  readonly #number: number
  readonly #read = new Map<number, ReadonlyMap<string, Tensor>>()

  constructor(where: string, files: CheckpointFolder, number: number) {
    this.#where = where
    this.#files = files
    this.#number = number
  }

  #file(rank: number): ReadonlyMap<string, Tensor> {
    const known = this.#read.get(rank)
    if (known !== undefined) return known
    const { tensors } = readSafetensors(this.#files.read(this.#number, rankFile(rank)))
    this.#read.set(rank, tensors)
    return tensors
  }

  /** A whole tensor. Throws ArgumentError unless the parts are there, and cover it, each element once. Then only it is made. */
  whole(name: string, { dtype, shape, parts }: StoredTensor): Tensor {
    const found = parts.map((part, i) => {
      const { rank, key, offsets, sizes } = part
      const tensor = this.#file(rank).get(key)
      const fits =
        tensor !== undefined &&
        tensor.dtype === dtype &&
        String(tensor.sizes) === String(sizes) &&
        offsets.length === shape.length &&
        shape.every((size, dim) => (offsets[dim] ?? 0) + (sizes[dim] ?? 0) <= size)
      if (!fits || parts.slice(0, i).some((earlier) => overlap(earlier, part)))
        throw new ArgumentError(`${this.#where}: the part of '${name}' at [${offsets.join(', ')}] in ${rankFile(rank)} is not as the manifest says.`)
      return { tensor, offsets, sizes }
    })
    const covered = found.reduce((sum, { tensor }) => sum + tensor.numel, 0)
    const numel = shape.reduce((a, b) => a * b, 1)
    if (covered !== numel) throw new ArgumentError(`${this.#where}: the parts of '${name}' have ${covered} elements, the tensor has ${numel}.`)
    const whole = Tensor.empty(shape, dtype)
    noGrad(() => {
      for (const { tensor, offsets, sizes } of found)
        offsets.reduce((view, offset, dim) => view.narrow(dim, offset, sizes[dim] ?? 0), whole).copy_(tensor)
    })
    return whole
  }
}
