// What a simd loop sums up in lanes, before it is combined into a local.
import type { CCode, CVal, Width } from './cCode.ts'

/** The parts of a vector, combined in pairs, which makes a shorter chain than one after the other. */
function inPairs(parts: readonly CVal[], combine: (a: CVal, b: CVal) => CVal): CVal {
  const of = (from: number, to: number): CVal => {
    const first = parts[from]
    if (to - from === 1 && first !== undefined) return first
    const middle = (from + to) >> 1
    return combine(of(from, middle), of(middle, to))
  }
  return of(0, parts.length)
}

export class Accumulator {
  readonly #code: CCode
  readonly #sum: CVal
  readonly #combine: (a: CVal, b: CVal) => CVal

  /** `sum` is a variable that holds the identity of the combination. */
  constructor(code: CCode, sum: CVal, combine: (a: CVal, b: CVal) => CVal) {
    this.#code = code
    this.#sum = sum
    this.#combine = combine
  }

  /** Adds the values of `width` iterations; where there are more than the sum has elements, they are first combined with each other. */
  add(value: CVal, width: Width): void {
    const values = this.#folded(this.#code.widened(value, width), this.#sum.width)
    this.#code.assign(this.#sum, this.#combine(this.#sum, values))
  }

  /** The same sum in fewer elements. */
  merged(width: Width): Accumulator {
    if (width === this.#sum.width) return this
    const { kind } = this.#sum
    return new Accumulator(this.#code, this.#code.variable(kind, width, this.#folded(this.#sum, width)), this.#combine)
  }

  /** All elements as one. */
  whole(): CVal {
    let sum = this.#sum
    while (sum.width > 1) {
      const half = sum.width / 2
      sum = this.#combine(this.#code.part(sum, 0, half), this.#code.part(sum, half, half))
    }
    return sum
  }

  #folded(value: CVal, width: Width): CVal {
    const parts = Array.from({ length: value.width / width }, (_, i) => this.#code.part(value, i * width, width))
    return inPairs(parts, this.#combine)
  }
}
