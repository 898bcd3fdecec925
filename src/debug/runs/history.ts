// The latest calls of a compiled graph, by content: some failures need a history (a buffer that is used again, a state that goes wrong at the second call).
import { sameBytes } from '../../kernels/index.ts'
import { sameShape, Tensor } from '../../tensor/index.ts'
import type { Storage } from '../../tensor/index.ts'
import { isolated } from './isolated.ts'

/** The inputs of calls, oldest first. */
export type Calls = readonly (readonly unknown[])[]

export class CallHistory {
  readonly #limit: number
  #calls: Calls = []

  /** Keeps the inputs of the last `limit` calls. */
  constructor(limit: number) {
    this.#limit = limit
  }

  /** Adds a call. Returns a copy of its inputs, of which nothing may be changed: what has not changed since the call before is not copied again. */
  add(inputs: readonly unknown[]): readonly unknown[] {
    const copy = sharedWith(this.#calls.at(-1) ?? [], isolated(null, inputs).inputs)
    this.#calls = [...this.#calls, copy].slice(-Math.max(1, this.#limit))
    return copy
  }

  /** The inputs of the calls, oldest first. */
  get calls(): Calls {
    return this.#calls
  }
}

/** The inputs, with the tensors of `before` where those have the same content. */
function sharedWith(before: readonly unknown[], inputs: readonly unknown[]): readonly unknown[] {
  const known = new Map<Storage, Storage | null>()
  const taken = new Set<Storage>()
  const find = (own: Storage, other: Storage | null): Storage | null => {
    if (other === null || taken.has(other) || !sameContent(own, other)) return null
    taken.add(other)
    return other
  }
  inputs.forEach((input, i) => {
    const other = before[i]
    if (!(input instanceof Tensor) || input.storage === null || known.has(input.storage)) return
    known.set(input.storage, find(input.storage, other instanceof Tensor ? other.storage : null))
  })
  return inputs.map((input, i) => {
    if (!(input instanceof Tensor) || input.storage === null) return input
    const storage = known.get(input.storage) ?? null
    const other = before[i]
    if (storage === null) return input
    if (other instanceof Tensor && other.storage === storage && sameView(input, other)) return other
    const { sizes, dtype, requiresGrad, isParameter } = input
    return Object.assign(new Tensor(sizes, dtype, storage, undefined, undefined, input), { requiresGrad, isParameter })
  })
}

const FLAGS = ['dtype', 'offset', 'requiresGrad', 'isParameter'] as const

const sameView = (a: Tensor, b: Tensor): boolean =>
  FLAGS.every((flag) => a[flag] === b[flag]) && sameShape(a.shape, b.shape) && sameShape(a.strides, b.strides)

/** Whether two memories hold the same bytes now. */
export function sameContent(a: Storage, b: Storage): boolean {
  const [x, y] = [a.peekBytes(), b.peekBytes()]
  return x !== null && y !== null && sameBytes(x, y)
}
