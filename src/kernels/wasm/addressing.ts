// Addresses of buffer elements. In the loops of a kernel, each distinct walk through a buffer has a running byte pointer that is advanced once per
// iteration; nothing is recomputed per element. In loops that the caller runs (a matrix template that calls an epilogue), addresses are computed
// from the loop's counter.
import { InternalError } from '../../errors/index.ts'
import { dtypeInfo } from '../dtype.ts'
import type { Index, LoopVar, Memory, Param, Scratch, Size } from '../loopIr.ts'
import { scratchLayout } from '../scratchLayout.ts'
import { sizeText } from '../sizes.ts'
import { strideAlong } from '../analysis.ts'
import type { FunctionBuilder } from './assembler.ts'
import type { VectorCode } from './vectorCode.ts'

/** A distance in bytes: known, or in an i32 local. */
export type Bytes = { readonly known: number } | { readonly local: number }

/** A loop around the code being written. */
export interface LoopScope {
  readonly loop: LoopVar
  /** The i32 local that holds the loop variable (in lanes: that of the first lane). */
  readonly counter: number
  /** Running pointers by walk; null for a loop that the caller runs. */
  readonly pointers: Map<string, { readonly local: number; readonly stride: Bytes }> | null
}

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
  private readonly scratchOffsets: ReadonlyMap<Scratch, Size>
  private readonly prologueValues = new Map<string, number>()

  /** Where the kernel has scratch memory, its address follows the parameters. */
  constructor(code: VectorCode, params: readonly Param[], scratch: readonly Scratch[]) {
    this.code = code
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

  /** `buffer[index]` without its dynamic part; lanes along `simd`. */
  address(buffer: Memory, index: Index, simd: LoopVar | null): Address {
    const { size } = dtypeInfo[buffer.dtype]
    const local = this.pointer(buffer, index, this.scopes.length)
    const laneStride = simd === null ? { known: 0 } : this.strideBytes(index, simd, size)
    return { local, offset: offsetOf(index) * size, laneStride }
  }

  /** Creates the running pointers of a loop that starts here: one for each walk of `accesses` that depends on the loop. */
  enter(loop: LoopVar, counter: number, accesses: readonly (readonly [Memory, Index])[]): void {
    const pointers = new Map<string, { local: number; stride: Bytes }>()
    const depth = this.scopes.length
    const scope: LoopScope = { loop, counter, pointers }
    for (const [buffer, index] of accesses) {
      const stride = this.strideBytes(index, loop, dtypeInfo[buffer.dtype].size)
      if ('known' in stride && stride.known === 0) continue
      this.scopes.push(scope)
      const key = this.keyOf(buffer, index, depth + 1)
      this.scopes.pop()
      if (pointers.has(key)) continue
      const local = this.code.tempI32()
      this.f.get(this.pointer(buffer, index, depth))
      this.f.set(local)
      pointers.set(key, { local, stride })
    }
    this.scopes.push(scope)
  }

  /** Advances the innermost loop's pointers by `steps` iterations. */
  advance(steps: number): void {
    for (const { local, stride } of this.scopes.at(-1)?.pointers?.values() ?? []) {
      this.f.get(local)
      this.pushBytes(stride, steps)
      this.f.op('i32.add')
      this.f.set(local)
    }
  }

  leave(): void {
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
  strideBytes(index: Index, loop: LoopVar, elementSize: number): Bytes {
    const stride = strideAlong(index.terms, loop)
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
  private pointer(buffer: Memory, index: Index, depth: number): number {
    const scope = this.scopes[depth - 1]
    if (scope === undefined) return this.root(buffer, index)
    if (!index.terms.some((term) => term.loop === scope.loop)) return this.pointer(buffer, index, depth - 1)
    if (scope.pointers !== null) {
      const known = scope.pointers.get(this.keyOf(buffer, index, depth))
      if (known !== undefined) return known.local
      const stride = strideAlong(index.terms, scope.loop)
      if (stride === 0) return this.pointer(buffer, index, depth - 1)
      throw new InternalError(`no running pointer for ${buffer.name} along ${scope.loop.name}`)
    }
    const outer = this.pointer(buffer, index, depth - 1)
    this.f.get(outer)
    this.f.get(scope.counter)
    this.pushBytes(this.strideBytes(index, scope.loop, dtypeInfo[buffer.dtype].size), 1)
    this.f.op('i32.mul')
    this.f.op('i32.add')
    const local = this.code.tempI32()
    this.f.set(local)
    return local
  }

  private root(buffer: Memory, index: Index): number {
    const start = this.start(buffer)
    if (index.base === 0 || offsetOf(index) !== 0) return start
    return this.once(`${buffer.name}+${sizeText(index.base)}`, () => {
      this.f.get(start)
      this.pushBytes(this.bytesOf(index.base, dtypeInfo[buffer.dtype].size), 1)
      this.f.op('i32.add')
    })
  }

  private keyOf(buffer: Memory, index: Index, depth: number): string {
    const strides = this.scopes.slice(0, depth).map(({ loop }) => {
      const stride = strideAlong(index.terms, loop)
      return typeof stride === 'number' ? stride : stride.map((size) => sizeText(size)).join('+')
    })
    return `${buffer.name}[${offsetOf(index) === 0 ? sizeText(index.base) : '+'}|${strides.join()}]`
  }
}

/** The part of the base that instructions carry as an immediate: only where the pointer without it is certain to lie in the buffer. */
function offsetOf(index: Index): number {
  const forward = index.dynamic.length === 0 && index.terms.every((term) => typeof term.stride === 'number' && term.stride >= 0)
  return forward && typeof index.base === 'number' && index.base > 0 ? index.base : 0
}
