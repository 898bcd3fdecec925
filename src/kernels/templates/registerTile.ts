// The register tile that the templates share: four rows by two vectors of sums, which stay in registers while the depth loop runs.
// Each step adds the products of four left values and two right vectors.
import { currentEngine } from '../engine.ts'
import type { FunctionBuilder, MemoryOp } from '../wasm/assembler.ts'

/** Rows of a tile. */
export const TILE_ROWS = 4

export class RegisterTile {
  /** The locals of the sums, by row. */
  readonly sums: readonly (readonly [number, number])[]
  readonly #f: FunctionBuilder
  readonly #fuses = currentEngine() === 'wasm-relaxed'
  readonly #left: number
  readonly #right: readonly [number, number]

  /** Takes new locals, and sets the sums to 0. */
  constructor(f: FunctionBuilder) {
    this.#f = f
    this.sums = Array.from({ length: TILE_ROWS }, () => [f.local('v128'), f.local('v128')] as const)
    this.#left = f.local('v128')
    this.#right = [f.local('v128'), f.local('v128')]
    for (const sum of this.sums.flat()) {
      f.f32x4Const(0)
      f.set(sum)
    }
  }

  /** Loads the right vectors of a step. `push` pushes the address of each; `offsets` are added to it, in bytes. */
  loadRight(push: (vector: 0 | 1) => void, offsets: readonly [number, number]): void {
    const load = (vector: 0 | 1): void => {
      push(vector)
      this.#f.memory('v128.load', offsets[vector])
      this.#f.set(this.#right[vector])
    }
    load(0)
    load(1)
  }

  /** Adds one step. `load` loads the left value of row r from `bytes` * r after the address in the local `left`. */
  addProducts(left: number, load: MemoryOp, bytes: number): void {
    const f = this.#f
    const [first, second] = this.#right
    this.sums.forEach(([a, b], row) => {
      f.get(left)
      f.memory(load, row * bytes)
      f.set(this.#left)
      for (const [sum, right] of [
        [a, first],
        [b, second],
      ] as const) {
        if (!this.#fuses) f.get(sum)
        f.get(this.#left)
        f.get(right)
        if (this.#fuses) f.get(sum)
        f.ops(...(this.#fuses ? (['f32x4.relaxed_madd'] as const) : (['f32x4.mul', 'f32x4.add'] as const)))
        f.set(sum)
      }
    })
  }
}
