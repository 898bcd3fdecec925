// Random operators: Philox itself, the statistics of what is drawn, and that a seed repeats the numbers.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { philox } from '../../../src/tensor/generator.ts'
import { opOf } from 'tensorfx/ops'
import type { OpDef } from '../../../src/dispatch/index.ts'
import { philoxNormal, philoxUniform } from '../../../src/ops/random/philox.ts'

const { Generator, getRngState, manualSeed, rand, randint, randn, randperm, setRngState, tensor, zeros } = torch

const numbers = (t: Tensor): number[] => Array.from(t.toTypedArray() as ArrayLike<number>, Number)
const mean = (values: number[]): number => values.reduce((a, b) => a + b, 0) / values.length

describe('philox', () => {
  it('gives the known answers of Philox4x32-10', () => {
    // From the reference implementation (Random123): counter and key all zero, and all ones.
    expect(philox({ seedLo: 0, seedHi: 0, offsetLo: 0, offsetHi: 0 }, 0)).toEqual([0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8])
  })

  it('has kernels that equal the reference', () => {
    for (const n of [1, 4, 5, 7, 16, 33]) {
      const quarter = Math.ceil(n / 4)
      const got = numbers(philoxUniform([n], 123, 5, 77, 1))
      const want = Array.from({ length: n }, (_, i) => {
        const words = philox({ seedLo: 123, seedHi: 5, offsetLo: 77, offsetHi: 1 }, i % quarter)
        return ((words[Math.floor(i / quarter)] as number) >>> 8) * 2 ** -24
      })
      expect(got).toEqual(want)
    }
  })

  it('has decompositions that give the same numbers as the kernels', () => {
    for (const n of [1, 5, 8, 31, 100]) {
      for (const fn of [philoxUniform, philoxNormal]) {
        const decompose = (opOf(fn) as OpDef).decompose as unknown as (...args: unknown[]) => Tensor
        expect(numbers(decompose([n], 3, 4, 5, 6))).toEqual(numbers(fn([n], 3, 4, 5, 6)))
      }
    }
  })
})

describe('rand, randn, randint, randperm', () => {
  it('have the right statistics', () => {
    manualSeed(1)
    const u = numbers(rand([10_000]))
    expect(Math.min(...u)).toBeGreaterThanOrEqual(0)
    expect(Math.max(...u)).toBeLessThan(1)
    expect(mean(u)).toBeCloseTo(0.5, 1)
    const z = numbers(randn([10_000]))
    expect(Math.abs(mean(z))).toBeLessThan(0.05)
    expect(Math.abs(mean(z.map((v) => v * v)) - 1)).toBeLessThan(0.05)
    const k = numbers(randint(-2, 3, [10_000]))
    expect(new Set(k)).toEqual(new Set([-2, -1, 0, 1, 2]))
    expect(numbers(randperm(50)).sort((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, i) => i))
  })

  it('have memory for their elements alone, though kernels draw four numbers at a time', () => {
    for (const t of [rand([2]), randn([5]), randint(0, 9, [3], { dtype: 'int32' }), torch.randLike(zeros([2]))]) {
      expect(t.storage?.nbytes).toBe(4 * t.numel)
      expect(() => torch.asStrided(t, [t.numel + 1], [1])).toThrow(/has \d elements/)
    }
  })

  it('repeat with the seed, and differ from call to call', () => {
    manualSeed(7)
    const a = numbers(rand([5]))
    const b = numbers(rand([5]))
    manualSeed(7)
    expect(numbers(rand([5]))).toEqual(a)
    expect(b).not.toEqual(a)
  })

  it('take a generator, whose state can be saved', () => {
    const generator = new Generator(3)
    numbers(rand([2], { generator }))
    const state = generator.getState()
    const next = numbers(rand([2], { generator }))
    generator.setState(state)
    expect(numbers(rand([2], { generator }))).toEqual(next)
    const saved = getRngState()
    const drawn = numbers(rand([2]))
    setRngState(saved)
    expect(numbers(rand([2]))).toEqual(drawn)
  })

  it('check their arguments', () => {
    expect(() => randint(3, 3, [2])).toThrow(/low < high/)
    expect(() => rand([2], { dtype: 'int32' })).toThrow(/torch\.rand: dtype must be a floating-point one, got int32/)
    expect(() => new Generator(-1)).toThrow(/seed must be an integer/)
    expect(() => torch.nn.functional.dropout(zeros([2]), 1.5)).toThrow(/p must be between 0 and 1/)
  })
})

describe('random methods and dropout', () => {
  it('fill tensors in place', () => {
    const x = zeros([1000])
    x.uniform_(2, 3)
    expect(Math.min(...numbers(x))).toBeGreaterThanOrEqual(2)
    expect(Math.max(...numbers(x))).toBeLessThanOrEqual(3)
    x.normal_(5, 0.1)
    expect(mean(numbers(x))).toBeCloseTo(5, 1)
  })

  it('bernoulli draws by probability', () => {
    const x = numbers(tensor([0, 1, 0, 1]).bernoulli())
    expect(x).toEqual([0, 1, 0, 1])
  })

  it('dropout zeroes and scales while training, with the same mask in backward', () => {
    manualSeed(2)
    const x = zeros([1000]).add(1).requiresGrad_()
    const y = torch.nn.functional.dropout(x, { p: 0.25 })
    const kept = numbers(y).filter((v) => v !== 0)
    expect(kept.length).toBeGreaterThan(650)
    expect(kept.length).toBeLessThan(850)
    for (const v of kept) expect(v).toBeCloseTo(1 / 0.75, 5)
    y.sum().backward()
    expect(numbers(x.grad as Tensor)).toEqual(numbers(y))
    expect(torch.nn.functional.dropout(x, { p: 0.25, training: false })).toBe(x)
  })
})
