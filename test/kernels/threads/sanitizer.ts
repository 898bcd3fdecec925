// What the chunks of a divided kernel touch: the reference interpreter runs each chunk of a step by itself, with a memory that notes every element that is read or written. Two chunks that run at
// the same time must not write the same element, nor may one read what the other writes.
import { dtypeInfo } from '../../../src/kernels/numbers/dtype.ts'
import type { StorageArray } from '../../../src/kernels/numbers/dtype.ts'
import type { Kernel, Param } from '../../../src/kernels/ir/loopIr.ts'
import { runReference } from '../../../src/kernels/ir/reference.ts'
import { sizeValue } from '../../../src/kernels/ir/sizes.ts'
import { divisionOf, sitesOf } from '../../../src/kernels/threads/overlap.ts'
import type { Division } from '../../../src/kernels/threads/overlap.ts'
import { splitKernel } from '../../../src/kernels/threads/split.ts'
import type { DividedStep, Split, Step } from '../../../src/kernels/threads/split.ts'
import type { Args } from '../harness.ts'

/** What was found. */
export interface Found {
  /** Loops that were run in chunks, and how many chunks those were. */
  divided: number
  chunks: number
  /** The elements that two chunks of a loop touch, at least one of them writing, in words. */
  readonly conflicts: string[]
}

/** Notes which elements are read and written. */
function noted(data: StorageArray, reads: Set<number>, writes: Set<number>): StorageArray {
  return new Proxy(data, {
    get(target, key) {
      const at = typeof key === 'string' ? Number(key) : NaN
      if (Number.isInteger(at)) reads.add(at)
      const value: unknown = Reflect.get(target, key)
      return typeof value === 'function' ? value.bind(target) : value
    },
    set(target, key, value) {
      writes.add(Number(key))
      return Reflect.set(target, key, value)
    },
  })
}

type Divide = (step: DividedStep, values: ReadonlyMap<Param, number>) => Division

type Touched = Map<string, { readonly reads: Set<number>; readonly writes: Set<number> }>

/** Runs the steps of a kernel on the arguments, which it changes. `divide` is what decides whether a loop may be divided. */
export class Sanitizer {
  readonly found: Found = { divided: 0, chunks: 0, conflicts: [] }
  readonly #kernel: Kernel
  readonly #split: Split
  readonly #args: Record<string, StorageArray | number>
  readonly #values: ReadonlyMap<Param, number>
  readonly #divide: Divide
  /** How many iterations a chunk has. */
  readonly #grain: number
  /** Whether loops are divided rather than those inside, where there is a choice. */
  readonly #outer: boolean

  constructor(
    kernel: Kernel,
    split: Split,
    args: Args,
    { grain, outer }: { readonly grain: number; readonly outer: boolean },
    divide: Divide = decided,
  ) {
    this.#outer = outer
    this.#kernel = kernel
    this.#split = split
    this.#args = { ...args }
    this.#grain = grain
    this.#divide = divide
    const addresses = new Map<unknown, number>()
    let top = 1024
    const addressOf = (data: StorageArray): number => {
      const known = addresses.get(data)
      if (known !== undefined) return known
      addresses.set(data, top)
      top += Math.ceil(data.byteLength / 16) * 16 + 16
      return addressOf(data)
    }
    this.#values = new Map(
      kernel.params.map((param) => {
        const value = args[param.name] ?? 0
        return [param, typeof value === 'number' ? value : addressOf(value)]
      }),
    )
    for (const { name, dtype, elements } of kernel.scratch ?? []) this.#args[name] = new dtypeInfo[dtype].array(this.#size(elements))
    this.#spoil('call')
    this.#steps(split.steps)
  }

  #size(size: Parameters<typeof sizeValue>[0]): number {
    return sizeValue(size, ({ name }) => Number(this.#args[name]))
  }

  /** Whatever was in scratch memory is lost: a thread's, or all, for another thread. */
  #spoil(per: 'call' | 'thread' | 'all'): void {
    for (const part of this.#kernel.scratch ?? []) {
      const data = this.#args[part.name]
      if ((per === 'all' || part.per === per) && typeof data === 'object') new Uint8Array(data.buffer).fill(0xff)
    }
  }

  #run(part: number, more: Record<string, StorageArray | number>): void {
    runReference({ ...this.#kernel, params: this.#split.params, scratch: [], body: this.#split.parts[part] ?? [] }, { ...this.#args, ...more })
  }

  #steps(steps: readonly Step[]): void {
    for (const step of steps) {
      if (step.kind === 'whole') this.#run(step.part, { $first: 0, $count: 0 })
      else if (step.kind === 'divided') this.#chunks(step)
      // Which of the two is better depends on times: both must be right.
      else if (step.kind === 'either') this.#steps([this.#outer && this.#divide(step.outer, this.#values).apart ? step.outer : step.inner])
      else {
        const { extent, step: distance } = step.stmt.loop
        const { name } = this.#split.params[step.param] ?? { name: '' }
        for (let value = 0; value < this.#size(extent); value += distance) {
          this.#args[name] = value
          this.#steps(step.steps)
        }
      }
    }
  }

  #chunks(step: DividedStep): void {
    const { loop } = step.stmt
    const extent = this.#size(loop.extent)
    if (extent <= 0) return
    if (!this.#divide(step, this.#values).apart) return this.#run(step.part, { $first: 0, $count: extent })
    this.found.divided++
    const chunk = this.#grain * loop.step
    const touched: Touched[] = []
    // The last chunk first: in any order the result is the same.
    for (let first = (Math.ceil(extent / chunk) - 1) * chunk; first >= 0; first -= chunk) {
      this.found.chunks++
      this.#spoil(step.ownScratch ? 'all' : 'thread')
      touched.push(this.#chunk(step, first, Math.min(chunk, extent - first)))
    }
    this.#compare(touched, `${this.#kernel.name}, loop ${loop.name} of ${extent}`)
  }

  #chunk(step: DividedStep, first: number, count: number): Touched {
    const touched: Touched = new Map()
    const watched: Record<string, StorageArray> = {}
    const names = new Map<StorageArray, string>()
    for (const [name, data] of Object.entries(this.#args)) {
      if (typeof data === 'number' || this.#kernel.scratch?.some((part) => part.name === name && (step.ownScratch || part.per === 'thread')) === true)
        continue
      // Two parameters may be one tensor.
      const one = names.get(data) ?? name
      names.set(data, one)
      let sets = touched.get(one)
      if (sets === undefined) touched.set(one, (sets = { reads: new Set(), writes: new Set() }))
      watched[name] = noted(data, sets.reads, sets.writes)
    }
    this.#run(step.part, { ...watched, $first: first, $count: count })
    return touched
  }

  #compare(touched: readonly Touched[], where: string): void {
    const writers = new Map<string, Map<number, number>>()
    for (const [chunk, memories] of touched.entries())
      for (const [name, { writes }] of memories) {
        const known = writers.get(name) ?? new Map<number, number>()
        writers.set(name, known)
        for (const at of writes) {
          if (known.has(at)) this.found.conflicts.push(`${where}: chunks ${known.get(at)} and ${chunk} write ${name}[${at}]`)
          known.set(at, chunk)
        }
      }
    for (const [chunk, memories] of touched.entries())
      for (const [name, { reads }] of memories)
        for (const at of reads) {
          const writer = writers.get(name)?.get(at)
          if (writer !== undefined && writer !== chunk)
            this.found.conflicts.push(`${where}: chunk ${chunk} reads ${name}[${at}], which chunk ${writer} writes`)
        }
  }
}

/** What the pool decides: parallel loops say of themselves that their iterations are apart. */
const decided: Divide = ({ stmt, ownScratch }, values) =>
  stmt.mode === 'parallel' ? { apart: true, repeatable: true } : divisionOf(sitesOf(stmt, ownScratch), values)

/** Runs a kernel in chunks; null if it cannot be divided. */
export function sanitized(kernel: Kernel, args: Args, how: ConstructorParameters<typeof Sanitizer>[3], divide?: Divide): Found | null {
  const split = splitKernel(kernel)
  return split === null ? null : new Sanitizer(kernel, split, args, how, divide).found
}
