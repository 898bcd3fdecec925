// Addresses of buffer elements. In the loops of a kernel, each distinct walk through a buffer has a running byte pointer that is advanced once per
// iteration; nothing is recomputed per element. What iterations that are written out add is part of the instructions.
import { InternalError } from '../../errors/index.ts'
import { remembered } from '../../protocol/index.ts'
import { dtypeInfo } from '../numbers/dtype.ts'
import type { Index, LoopVar, Memory, Param, Scratch, Size } from '../ir/loopIr.ts'
import { scratchLayout } from '../ir/scratchLayout.ts'
import { roundedUp, sizeProduct, sizeSum, sizeText } from '../ir/sizes.ts'
import { strideAlong } from '../ir/analysis.ts'
import type { FunctionBuilder } from '../wasm/assembler.ts'
import type { VectorCode } from '../wasm/vectorCode.ts'

/** A distance in bytes: known, or in an i32 local. */
export type Bytes = { readonly known: number } | { readonly local: number }

/** A loop around the code being written. */
export type LoopScope = RunningLoop | KnownLoop

/** A loop that runs. */
export interface RunningLoop {
  readonly kind: 'running'
  readonly loop: LoopVar
  /** The i32 local that holds the loop variable (in lanes: that of the first lane). */
  readonly counter: number
  /** Whether code reads the counter. */
  counterUsed: boolean
  /** Running pointers by walk, made at their first use. */
  readonly pointers: Map<string, RunningPointer>
}

interface RunningPointer {
  readonly local: number
  readonly stride: Bytes
  readonly walk: Walk
}

/** A loop whose iterations are written out: its variable is known (in lanes: that of the first lane). */
export interface KnownLoop {
  readonly kind: 'known'
  readonly loop: LoopVar
  value: number
}

/** A way through memory: from an element at a known or computed distance (in elements), along the loops that run. */
interface Walk {
  readonly memory: Memory
  readonly start: Size
  readonly terms: Terms
}

type Terms = Index['terms']

/** What is the same each time code accesses an element of memory by an index while the same loops run. */
interface Access {
  /** The local with the pointer of its walk. */
  readonly pointer: number
  /** What instructions contain, in elements, beside what iterations that are written out add. */
  readonly offset: number
  /** Along the loops that are written out. */
  readonly writtenOut: Terms
}

/** By what is accessed. */
type Accesses = Map<Memory, Map<Index, Access>>

/** An element's address: the i32 in `local` plus `offset` bytes. The elements of neighbouring lanes are `laneStride` apart. */
export interface Address {
  readonly local: number
  readonly offset: number
  readonly laneStride: Bytes
}

export class Addressing {
  readonly scopes: LoopScope[] = []
  private readonly code: VectorCode
  private readonly f: FunctionBuilder
  private readonly params: ReadonlyMap<Param, number>
  /** The loops that are written out wherever they are in the kernel. */
  private readonly writtenOut: ReadonlySet<LoopVar>
  private readonly scratchOffsets: ReadonlyMap<Scratch, Size>
  private readonly prologueValues = new Map<string, number>()
  /** Of the loops around the code being written that are written out, the variables. */
  private readonly values = new Map<LoopVar, number>()
  /** What has been accessed outside of loops, and in each loop that runs. */
  private readonly accesses: [Accesses, ...Accesses[]] = [new Map()]

  /** Where the kernel has scratch memory, its address follows the parameters. */
  constructor(code: VectorCode, params: readonly Param[], scratch: readonly Scratch[], writtenOut: ReadonlySet<LoopVar>) {
    this.code = code
    this.writtenOut = writtenOut
    this.f = code.f
    this.params = new Map(params.map((param, i) => [param, i]))
    this.scratchOffsets = scratchLayout(scratch).offsets
  }

  /** The local of a parameter. Throws InternalError when the kernel does not list it. */
  param(param: Param): number {
    const local = this.params.get(param)
    if (local === undefined) throw new InternalError(`the ${param.kind} parameter ${param.name} is used but not listed in the kernel's parameters`)
    return local
  }

  /** Pushes a size. */
  pushSize(size: Size): void {
    if (typeof size === 'number') return this.f.i32Const(size)
    if (size.kind === 'size') return this.f.get(this.param(size))
    const { op, a, b } = size
    const known = this.prologueValues.get(sizeText(size))
    if (known !== undefined) return this.f.get(known)
    this.f.get(
      this.once(sizeText(size), () => {
        this.pushSize(a)
        if (op === 'roundDown') this.pushSize(a)
        this.pushSize(b)
        if (op === 'roundDown') this.f.ops('i32.rem_u', 'i32.sub')
        else this.f.op(`i32.${op}`)
      }),
    )
  }

  /** The local with the address of a buffer's or a scratch memory's first element. */
  private start(memory: Memory): number {
    if (memory.kind === 'buffer') return this.param(memory)
    const offset = this.scratchOffsets.get(memory)
    if (offset === undefined) throw new InternalError(`the scratch memory ${memory.name} is used but not listed in the kernel's`)
    return this.once(`${memory.name}[]`, () => {
      this.f.get(this.params.size)
      this.f.i32Const(63)
      this.f.op('i32.add')
      this.f.i32Const(-64)
      this.f.op('i32.and')
      this.pushSize(offset)
      this.f.op('i32.add')
    })
  }

  /** `memory[index]` without its dynamic part; lanes along `simd`. */
  address(memory: Memory, index: Index, simd: LoopVar | null): Address {
    const { size } = dtypeInfo[memory.dtype]
    const { pointer, offset, distance } = this.placeOf(memory, index)
    const local = this.shifted(pointer, distance, size)
    const laneStride = simd === null ? { known: 0 } : this.strideBytes(index, simd, size)
    return { local, offset: offset * size, laneStride }
  }

  /** The value of a loop whose iterations are written out; null for one that runs. */
  known(loop: LoopVar): number | null {
    return this.values.get(loop) ?? null
  }

  /** Whether the kernel has a loop of this variable that is written out. */
  isWrittenOut(loop: LoopVar): boolean {
    return this.writtenOut.has(loop)
  }

  /** The local with an address and a distance, in elements, from it. */
  private shifted(address: number, distance: Size, elementSize: number): number {
    if (distance === 0) return address
    this.f.get(address)
    this.pushBytes(this.bytesOf(distance, elementSize), 1)
    this.f.op('i32.add')
    const local = this.code.tempI32()
    this.f.set(local)
    return local
  }

  /**
   * An access is a walk, which many accesses share, and what iterations that are written out add to it, in elements: `offset`, which instructions contain, and `distance`, which is
   * known only at run time, or goes backwards.
   */
  private placeOf(memory: Memory, index: Index): { readonly pointer: number; readonly offset: number; readonly distance: Size } {
    const accesses = this.accesses.at(-1) ?? this.accesses[0]
    const access = remembered(
      remembered(accesses, memory, () => new Map<Index, Access>()),
      index,
      () => this.accessOf(memory, index),
    )
    let { offset } = access
    let distance: Size = 0
    for (const { loop, stride } of access.writtenOut) {
      // What is moved in front of a loop begins where its first iteration does.
      const value = this.known(loop) ?? 0
      // An iteration that is written out accesses an element after that of the first one: the pointer lies in the buffer without it.
      if (typeof stride === 'number' && stride >= 0) offset += value * stride
      else distance = sizeSum(distance, sizeProduct(stride, value))
    }
    return { pointer: access.pointer, offset, distance }
  }

  private accessOf(memory: Memory, index: Index): Access {
    const offset = offsetOf(index)
    const runs = ({ loop }: Terms[number]): boolean => this.scopes.some((scope) => scope.kind === 'running' && scope.loop === loop)
    const walk = { memory, start: offset === 0 ? index.base : 0, terms: index.terms.filter(runs) }
    return { pointer: this.pointer(walk, this.scopes.length), offset, writtenOut: index.terms.filter((term) => !runs(term)) }
  }

  /** A loop starts here. Its pointers are made as code uses them, see {@link RunningLoop.pointers}: `leave` sets them. */
  enter(loop: LoopVar, counter: number): RunningLoop {
    const scope: RunningLoop = { kind: 'running', loop, counter, counterUsed: false, pointers: new Map() }
    this.scopes.push(scope)
    this.accesses.push(new Map())
    return scope
  }

  /** Advances the pointers of a loop by `steps` iterations. */
  advance(scope: RunningLoop, steps: number): void {
    for (const { local, stride } of scope.pointers.values()) {
      this.f.get(local)
      this.pushBytes(stride, steps)
      this.f.op('i32.add')
      this.f.set(local)
    }
  }

  /**
   * Writes the end of a pointer of a loop, which tells the last iteration as well as a counter does: after it the pointer is there. Null where there is no pointer that
   * is certain to move.
   */
  endOf(scope: RunningLoop): { readonly pointer: number; readonly local: number } | null {
    const { extent, step } = scope.loop
    for (const { local: pointer, stride } of scope.pointers.values()) {
      if (!('known' in stride)) continue
      const local = this.code.ownI32()
      this.f.get(pointer)
      this.pushSize(sizeProduct(roundedUp(extent, step), stride.known))
      this.f.op('i32.add')
      this.f.set(local)
      return { pointer, local }
    }
    return null
  }

  /** Ends the innermost loop, and sets its pointers to where they start: this code goes before the loop's. */
  leave(): void {
    const scope = this.scopes.pop()
    if (scope?.kind !== 'running') throw new InternalError('a loop ends that has not started')
    this.accesses.pop()
    for (const { local, walk } of scope.pointers.values()) {
      this.f.get(this.pointer(walk, this.scopes.length))
      this.f.set(local)
    }
  }

  /** The locals of the pointers of a loop, and others of its own, are free for other code from here on. */
  release(scope: RunningLoop, ...others: readonly number[]): void {
    for (const { local } of scope.pointers.values()) this.code.giveBack(local)
    for (const local of others) this.code.giveBack(local)
  }

  /** Runs `body` for an iteration of a loop that is written out, whose variable has that value. */
  knowing(loop: LoopVar, value: number, body: () => void): void {
    this.scopes.push({ kind: 'known', loop, value })
    this.values.set(loop, value)
    body()
    this.values.delete(loop)
    this.scopes.pop()
  }

  /** Pushes `times` strides. */
  pushBytes(stride: Bytes, times: number): void {
    if ('known' in stride) {
      this.f.i32Const(stride.known * times)
      return
    }
    this.f.get(stride.local)
    if (times === 1) return
    const shift = Math.log2(times)
    this.f.i32Const(Number.isInteger(shift) ? shift : times)
    this.f.op(Number.isInteger(shift) ? 'i32.shl' : 'i32.mul')
  }

  /** The distance in bytes between neighbours along a loop. */
  strideBytes({ terms }: Pick<Index, 'terms'>, loop: LoopVar, elementSize: number): Bytes {
    const stride = strideAlong(terms, loop)
    return typeof stride === 'number' ? { known: stride * elementSize } : { local: this.scaled(stride, elementSize) }
  }

  /** A size in bytes: known or a local computed once. */
  bytesOf(size: Size, elementSize: number): Bytes {
    return typeof size === 'number' ? { known: size * elementSize } : { local: this.scaled([size], elementSize) }
  }

  /** The local with (sum of sizes) * elementSize, computed at the start of the function. */
  private scaled(sizes: readonly Size[], elementSize: number): number {
    return this.once(`${sizes.map((size) => sizeText(size)).join('+')}*${elementSize}`, () => {
      sizes.forEach((size, i) => {
        this.pushSize(size)
        if (i > 0) this.f.op('i32.add')
      })
      this.f.i32Const(elementSize)
      this.f.op('i32.mul')
    })
  }

  private once(key: string, push: () => void): number {
    let local = this.prologueValues.get(key)
    if (local === undefined) {
      const made = this.f.local('i32')
      this.f.prologue(() => {
        push()
        this.f.set(made)
      })
      local = made
      this.prologueValues.set(key, local)
    }
    return local
  }

  /** The local with the address of the walk's element, taking only the first `depth` loops into account. */
  private pointer(walk: Walk, depth: number): number {
    const scope = this.scopes[depth - 1]
    if (scope === undefined) return this.root(walk)
    if (scope.kind === 'known' || !walk.terms.some((term) => term.loop === scope.loop)) return this.pointer(walk, depth - 1)
    const { size } = dtypeInfo[walk.memory.dtype]
    const stride = this.strideBytes(walk, scope.loop, size)
    if ('known' in stride && stride.known === 0) return this.pointer(walk, depth - 1)
    return remembered(scope.pointers, this.keyOf(walk, depth), () => ({ local: this.code.ownI32(), stride, walk })).local
  }

  private root({ memory, start }: Walk): number {
    const first = this.start(memory)
    if (start === 0) return first
    return this.once(`${memory.name}+${sizeText(start)}`, () => {
      this.f.get(first)
      this.pushBytes(this.bytesOf(start, dtypeInfo[memory.dtype].size), 1)
      this.f.op('i32.add')
    })
  }

  /** What walks with the same pointer have in common: where they start, and their strides along the first `depth` loops, as far as they run. */
  private keyOf({ memory, start, terms }: Walk, depth: number): string {
    let key = `${memory.name}[${sizeText(start)}`
    for (let i = 0; i < depth; i++) {
      const scope = this.scopes[i]
      if (scope?.kind !== 'running') continue
      const stride = strideAlong(terms, scope.loop)
      key += typeof stride === 'number' ? `|${stride}` : `|${stride.map((size) => sizeText(size)).join('+')}`
    }
    return key
  }
}

/** The part of the base that instructions carry as an immediate: only where the pointer without it is certain to lie in the buffer. */
function offsetOf(index: Index): number {
  const forward = index.dynamic.length === 0 && index.terms.every((term) => typeof term.stride === 'number' && term.stride >= 0)
  return forward && typeof index.base === 'number' && index.base > 0 ? index.base : 0
}
