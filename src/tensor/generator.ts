// Random generators: a seed and a counter. A generator does not make numbers itself: each random operator draws (seed, offset) from it and computes
// Philox4x32-10 of them, so that eager and compiled programs get the same numbers.
import { checkArgument, checkCount, checkMethod, isObject, uncalledHint, valueText } from '../protocol/index.ts'
import { ArgumentError } from '../errors/index.ts'

/** What a random operator call needs: 64 bits of seed and 64 bits of offset, as signed 32-bit halves. */
export interface RandomDraw {
  readonly seedLo: number
  readonly seedHi: number
  readonly offsetLo: number
  readonly offsetHi: number
}

/** The state of a generator, from which its numbers can be repeated. */
export interface GeneratorState {
  readonly seed: number
  readonly offset: number
}

const TWO_32 = 2 ** 32

function checkCounter(where: string, what: string, value: number): number {
  if (!Number.isSafeInteger(value) || value < 0)
    throw new ArgumentError(`${where}: ${what} must be an integer between 0 and 2^53 - 1, got ${valueText(value)}.${uncalledHint(value)}`)
  return value
}

/** A source of random numbers; PyTorch's `torch.Generator`. */
export class Generator {
  /** Called before any generator changes its state; set by code that restores states later. @internal */
  static beforeAnyDraw: ((generator: Generator) => void) | null = null
  #seed: number
  #offset = 0

  constructor(seed = 0) {
    checkCount('Generator', arguments, 1)
    this.#seed = checkCounter('Generator', 'seed', seed)
  }

  /** Restarts from a seed; returns the generator. PyTorch's `manual_seed`. */
  manualSeed(seed: number): this {
    checkMethod(this, 'manualSeed', arguments, 1)
    const checked = checkCounter('manualSeed', 'seed', seed)
    Generator.beforeAnyDraw?.(this)
    this.#seed = checked
    this.#offset = 0
    return this
  }

  /** PyTorch's `initial_seed`. */
  initialSeed(): number {
    checkMethod(this, 'initialSeed', arguments, 0)
    return this.#seed
  }

  getState(): GeneratorState {
    checkMethod(this, 'getState', arguments, 0)
    return { seed: this.#seed, offset: this.#offset }
  }

  /** Restores a state from {@link getState}; returns the generator. */
  setState(state: GeneratorState): this {
    checkMethod(this, 'Generator.setState', arguments, 1)
    checkArgument(isObject(state), 'Generator.setState', 'state', 'an object { seed, offset }', state)
    const seed = checkCounter('Generator.setState', 'seed', state.seed)
    const offset = checkCounter('Generator.setState', 'offset', state.offset)
    Generator.beforeAnyDraw?.(this)
    this.#offset = offset
    this.#seed = seed
    return this
  }

  /** Seed and offset for one random operator call; each call gets another offset. */
  draw(): RandomDraw {
    Generator.beforeAnyDraw?.(this)
    const offset = this.#offset++
    const draw = {
      seedLo: this.#seed | 0,
      seedHi: Math.floor(this.#seed / TWO_32) | 0,
      offsetLo: offset | 0,
      offsetHi: Math.floor(offset / TWO_32) | 0,
    }
    latest.generator = this
    latest.draw = draw
    return draw
  }
}

const latest: { generator: Generator | null; draw: RandomDraw } = { generator: null, draw: { seedLo: 0, seedHi: 0, offsetLo: 0, offsetHi: 0 } }

/** The generator whose draw was the latest one, if that gave the numbers [seedLo, seedHi, offsetLo, offsetHi]; otherwise null. */
export function generatorOf(numbers: readonly unknown[]): Generator | null {
  const { seedLo, seedHi, offsetLo, offsetHi } = latest.draw
  return [seedLo, seedHi, offsetLo, offsetHi].every((n, i) => n === numbers[i]) ? latest.generator : null
}

/** The generator of operators that are not given one. Its seed is random unless manualSeed is called. */
export const defaultGenerator: Generator = new Generator(Math.floor(Math.random() * TWO_32))

/** Seeds the default generator and returns it. PyTorch's `torch.manual_seed`. */
export function manualSeed(seed: number): Generator {
  checkCount('torch.manualSeed', arguments, 1)
  return defaultGenerator.manualSeed(seed)
}

/** The state of the default generator. PyTorch's `torch.get_rng_state`. */
export function getRngState(): GeneratorState {
  checkCount('torch.getRngState', arguments, 0)
  return defaultGenerator.getState()
}

/** Restores a state of the default generator. PyTorch's `torch.set_rng_state`. */
export function setRngState(state: GeneratorState): void {
  checkCount('torch.setRngState', arguments, 1)
  defaultGenerator.setState(state)
}

function mulHi(a: number, b: number): number {
  const [ah, al, bh, bl] = [a >>> 16, a & 0xffff, b >>> 16, b & 0xffff]
  const middle = ah * bl + ((al * bl) >>> 16)
  const low = (middle & 0xffff) + al * bh
  return (ah * bh + Math.floor(middle / 65536) + Math.floor(low / 65536)) >>> 0
}

/** Four random 32-bit words: Philox4x32-10 at counter (offset, index, 0). The kernels must compute the same. */
export function philox(draw: RandomDraw, index: number): [number, number, number, number] {
  let [c0, c1, c2, c3] = [draw.offsetLo >>> 0, draw.offsetHi >>> 0, index >>> 0, 0]
  let [k0, k1] = [draw.seedLo, draw.seedHi]
  for (let round = 0; round < 10; round++) {
    const hi0 = mulHi(0xd2511f53, c0)
    const lo0 = Math.imul(0xd2511f53, c0) >>> 0
    const hi1 = mulHi(0xcd9e8d57, c2)
    const lo1 = Math.imul(0xcd9e8d57, c2) >>> 0
    ;[c0, c1, c2, c3] = [(hi1 ^ c1 ^ k0) >>> 0, lo1, (hi0 ^ c3 ^ k1) >>> 0, lo0]
    k0 = (k0 + 0x9e3779b9) | 0
    k1 = (k1 + 0xbb67ae85) | 0
  }
  return [c0, c1, c2, c3]
}
