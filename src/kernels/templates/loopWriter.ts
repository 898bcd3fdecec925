// Counted loops and address arithmetic for templates, which write WebAssembly directly. All addresses and counters are i32 locals.
import type { FunctionBuilder } from '../wasm/assembler.ts'

/** A number known when the kernel is written, or an i32 local. */
export type Count = number | { readonly local: number }

export class LoopWriter {
  readonly f: FunctionBuilder

  constructor(f: FunctionBuilder) {
    this.f = f
  }

  /** A new i32 local with the value that `push` leaves on the stack. */
  let(push: () => void): number {
    const local = this.f.local('i32')
    push()
    this.f.set(local)
    return local
  }

  push(count: Count): void {
    if (typeof count === 'number') this.f.i32Const(count)
    else this.f.get(count.local)
  }

  /** `for (counter = start; counter < limit; counter += step)`. */
  count(limit: Count, step: number, body: (counter: number) => void, start: Count = 0): void {
    const { f } = this
    const known = typeof limit === 'number' && typeof start === 'number'
    if (known && limit <= start) return
    const counter = this.let(() => this.push(start))
    const loop = (): void =>
      f.loop((again) => {
        body(counter)
        f.get(counter)
        f.i32Const(step)
        f.op('i32.add')
        f.tee(counter)
        this.push(limit)
        f.op('i32.lt_s')
        f.brIf(again)
      })
    if (known) return loop()
    f.get(counter)
    this.push(limit)
    f.op('i32.lt_s')
    f.if(loop)
  }

  /** Pushes the smaller of two i32 locals or numbers. */
  least(a: Count, b: Count): void {
    this.push(a)
    this.push(b)
    this.push(a)
    this.push(b)
    this.f.op('i32.lt_s')
    this.f.op('select')
  }

  /** Pushes base + counter * bytes. */
  offset(base: number, counter: number, bytes: Count): void {
    const { f } = this
    f.get(base)
    f.get(counter)
    this.push(bytes)
    f.op('i32.mul')
    f.op('i32.add')
  }

  /** A new local with base + counter * bytes. */
  address(base: number, counter: number, bytes: Count): number {
    return this.let(() => this.offset(base, counter, bytes))
  }

  /** pointer += bytes. */
  advance(pointer: number, bytes: Count): void {
    const { f } = this
    f.get(pointer)
    this.push(bytes)
    f.op('i32.add')
    f.set(pointer)
  }

  /** Zeroes that many bytes, rounded up to whole vectors, from the address in `base`. */
  clear(base: number, bytes: Count): void {
    const { f } = this
    const to = this.let(() => f.get(base))
    this.count(bytes, 16, () => {
      f.get(to)
      f.f32x4Const(0)
      f.memory('v128.store')
      this.advance(to, 16)
    })
  }
}
