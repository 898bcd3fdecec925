// Products and convolutions with each of their sizes 0 in turn, eager and compiled, in default, strict and fast code, with gradients: against their definitions as plain sums, where a sum of
// nothing is 0 and what is added to it stays.
import { describe, expect, test } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { withStrict } from '../../src/kernels/engine/computing.ts'

const F = torch.nn.functional

type Sizes = Readonly<Record<string, number>>
type Index = Readonly<Record<string, number>>

/** A function of three tensors that is linear in the first two, and the sum that defines it: the letters of each tensor's indices, and whether a term is there. */
interface Case {
  readonly run: (x: Tensor, w: Tensor, bias: Tensor) => Tensor
  readonly sizes: Sizes
  /** Letters of the operands' dimensions and of the result's; letters that the result lacks are summed over. */
  readonly x: string
  readonly w: string
  readonly bias: string
  readonly out: string
  /** Sizes of the result that follow from others. */
  readonly derived?: (sizes: Sizes) => Sizes
  /** The index of the first operand, where it is another than that of the letters; null where the term is not there. */
  readonly at?: (index: Index, sizes: Sizes) => Index | null
}

const PADDING = 2
const side = (size: number, kernel: number): number => size + 2 * PADDING - kernel + 1

const cases: Readonly<Record<string, Case>> = {
  addmm: { run: (x, w, b) => torch.addmm(b, x, w), sizes: { i: 6, k: 7, j: 9 }, x: 'ik', w: 'kj', bias: 'j', out: 'ij' },
  linear: { run: (x, w, b) => F.linear(x, w, b), sizes: { z: 2, i: 6, k: 7, j: 9 }, x: 'zik', w: 'jk', bias: 'j', out: 'zij' },
  bmm: { run: (x, w, b) => x.bmm(w).add(b), sizes: { z: 2, i: 6, k: 7, j: 9 }, x: 'zik', w: 'zkj', bias: 'j', out: 'zij' },
  mv: { run: (x, w, b) => x.mv(w).add(b), sizes: { i: 6, k: 9 }, x: 'ik', w: 'k', bias: 'i', out: 'i' },
  'a row times a matrix': { run: (x, w, b) => x.mm(w).add(b), sizes: { i: 1, k: 9, j: 8 }, x: 'ik', w: 'kj', bias: 'j', out: 'ij' },
  conv2d: {
    run: (x, w, b) => F.conv2d(x, w, b, { padding: PADDING }),
    sizes: { n: 2, c: 16, o: 16, h: 3, w: 4, y: 3, x: 3 },
    derived: ({ h = 0, w = 0, y = 0, x = 0 }) => ({ r: side(h, y), s: side(w, x) }),
    at: ({ r = 0, s = 0, y = 0, x = 0, ...rest }, { h: height = 0, w: width = 0 }) => {
      const [h, w] = [r + y - PADDING, s + x - PADDING]
      return h >= 0 && h < height && w >= 0 && w < width ? { ...rest, h, w } : null
    },
    ...{ x: 'nchw', w: 'ocyx', bias: 'o', out: 'nors' },
  },
}

const shapeOf = (letters: string, sizes: Sizes): number[] => [...letters].map((letter) => sizes[letter] ?? NaN)
const count = (shape: readonly number[]): number => shape.reduce((product, size) => product * size, 1)

/** Where an element lies in a contiguous tensor with those letters. */
const offset = (letters: string, index: Index, sizes: Sizes): number =>
  [...letters].reduce((place, letter) => place * (sizes[letter] ?? NaN) + (index[letter] ?? NaN), 0)

/** Every index over the letters. */
function* indices(letters: readonly string[], sizes: Sizes, found: Index = {}): Generator<Index> {
  const [first, ...rest] = letters
  if (first === undefined) yield found
  else for (let i = 0; i < (sizes[first] ?? 0); i++) yield* indices(rest, sizes, { ...found, [first]: i })
}

/** The result and the three gradients of its sum weighted with `grad`, as the definition has them. */
function defined({ x, w, bias, out, at = (index) => index }: Case, sizes: Sizes, [X, W, B, G]: readonly (readonly number[])[]): readonly number[][] {
  const zeros = (letters: string): number[] => Array.from({ length: count(shapeOf(letters, sizes)) }, () => 0)
  const [result, gx, gw, gb] = [zeros(out), zeros(x), zeros(w), zeros(bias)]
  const add = (values: number[], i: number, by: number): void => void (values[i] = (values[i] ?? NaN) + by)
  for (const index of indices([...out], sizes)) {
    const [o, b] = [offset(out, index, sizes), offset(bias, index, sizes)]
    add(result, o, B?.[b] ?? NaN)
    add(gb, b, G?.[o] ?? NaN)
  }
  const letters = [...new Set([...out, ...w, ...(out.includes('r') ? '' : x)])]
  for (const index of indices(letters, sizes)) {
    const place = at(index, sizes)
    if (place === null) continue
    const [i, j, o] = [offset(x, place, sizes), offset(w, index, sizes), offset(out, index, sizes)]
    add(result, o, (X?.[i] ?? NaN) * (W?.[j] ?? NaN))
    add(gx, i, (G?.[o] ?? NaN) * (W?.[j] ?? NaN))
    add(gw, j, (G?.[o] ?? NaN) * (X?.[i] ?? NaN))
  }
  return [result, gx, gw, gb]
}

/** Whole numbers, whose sums are exact in every order; with windows of Winograd's algorithms too, which halve and quarter them. */
const whole = (n: number, seed: number): number[] => Array.from({ length: n }, (_, i) => 4 * (((i * 7 + seed * 3) % 9) - 4))

const ways: Readonly<Record<string, (f: (...args: Tensor[]) => readonly Tensor[]) => (...args: Tensor[]) => readonly Tensor[]>> = {
  eager: (f) => f,
  'eager and strict':
    (f) =>
    (...args) =>
      withStrict(true, () => f(...args)),
  compiled: (f) => compile(f),
  'compiled and strict': (f) => compile(f, { options: { strict: true } }),
  'compiled and fast': (f) => compile(f, { options: { convolution: 'fast' } }),
}

describe.each(Object.entries(cases))('%s', (_, one) => {
  const { sizes, x, w, bias, out, run, derived = () => ({}) } = one
  test.each(['none', ...Object.keys(sizes)])('with a size of 0: %s', (zero) => {
    const given = { ...sizes, [zero]: 0 }
    const all = { ...given, ...derived(given) }
    const shapes = [x, w, bias, out].map((letters) => shapeOf(letters, all))
    const values = shapes.map((shape, i) => whole(count(shape), i))
    const expected = defined(one, all, values)
    const step = (...args: Tensor[]): readonly Tensor[] => {
      const leaves = args.slice(0, 3).map((t) => t.detach().requiresGrad_())
      const [a, b, c] = leaves as [Tensor, Tensor, Tensor]
      const result = run(a, b, c)
      result
        .mul(args[3] as Tensor)
        .sum()
        .backward()
      return [result.detach(), ...leaves.map((leaf) => leaf.grad as Tensor)]
    }
    const args = shapes.map((shape, i) => torch.tensor(values[i] ?? [], { dtype: 'float32' }).reshape(shape))
    for (const [name, made] of Object.entries(ways)) {
      const results = made(step)(...args)
      for (const [i, letters] of [out, x, w, bias].entries()) {
        expect(results[i]?.sizes, `${name}, ${i}`).toEqual(shapeOf(letters, all))
        const got = Array.from(results[i]?.toTypedArray() as Float32Array, (value) => value + 0)
        expect(got, `${name}, ${i}`).toEqual(expected[i]?.map((value) => value + 0))
      }
    }
  })
})
