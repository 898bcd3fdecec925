// Convolutions that run by Winograd's algorithm, in eager mode and compiled: against float64, in strict code, with epilogues and gradients, and where memory runs out.
import { afterEach, describe, expect, test } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { compile, disable } from 'tensorfx/compile'
import { withStrict } from '../../src/kernels/engine/computing.ts'
import { OutOfMemoryError, kernelsByCall, withFailingAllocation } from '../../src/kernels/index.ts'
import { half } from '../helpers/rotation.ts'

const F = torch.nn.functional
afterEach(() => torch.memory.emptyCache())

interface Layer {
  readonly batch: number
  readonly channels: number
  readonly features: number
  readonly size: readonly [number, number]
  readonly padding: number | readonly [number, number]
  readonly why: string
}

const layers: readonly Layer[] = [
  { batch: 2, channels: 16, features: 16, size: [8, 8], padding: 1, why: 'whole tiles' },
  { batch: 1, channels: 19, features: 21, size: [11, 13], padding: 1, why: 'channels, features, rows and columns beside whole tiles' },
  { batch: 1, channels: 16, features: 24, size: [10, 12], padding: [0, 2], why: 'padding that differs' },
  { batch: 1, channels: 64, features: 48, size: [28, 28], padding: 1, why: 'several blocks of rows' },
]

const inputs = ({ batch, channels, features, size }: Layer): readonly [Tensor, Tensor, Tensor] => {
  torch.manualSeed(channels)
  return [torch.randn([batch, channels, ...size]), torch.randn([features, channels, 3, 3]), torch.randn([features])]
}

const largest = (a: Tensor): number => Number(a.abs().max().item())
const double = (a: Tensor): Tensor => a.to('float64')

/** Sums in the order channel, y, x, each product and each sum rounded to float32. */
function strictSums(x: Tensor, w: Tensor, bias: Tensor, padding: number): Float32Array {
  const [n = 0, channels = 0, height = 0, width = 0] = x.shape
  const [features = 0] = w.shape
  const [X, W, B] = [x, w, bias].map((t) => t.toTypedArray() as Float32Array)
  const out: number[] = []
  for (let image = 0; image < n; image++)
    for (let o = 0; o < features; o++)
      for (let p = 0; p < height * width; p++) {
        let sum = 0
        for (let c = 0; c < channels; c++)
          for (let k = 0; k < 9; k++) {
            const [y, column] = [Math.floor(p / width) + Math.floor(k / 3) - padding, (p % width) + (k % 3) - padding]
            const isInside = y >= 0 && y < height && column >= 0 && column < width
            const pixel = isInside ? (X?.[((image * channels + c) * height + y) * width + column] ?? NaN) : 0
            sum = Math.fround(sum + Math.fround(pixel * (W?.[(o * channels + c) * 9 + k] ?? NaN)))
          }
        out.push(Math.fround(sum + (B?.[o] ?? NaN)))
      }
  return Float32Array.from(out)
}

describe('convolutions of 3x3 windows', () => {
  for (const layer of half(layers)) {
    test(`are as accurate as in strict code, with their gradients: ${layer.why}`, () => {
      const [x, w, b] = inputs(layer)
      const results = (input: Tensor, weight: Tensor, bias: Tensor): readonly Tensor[] => {
        const [leaf, weights] = [input.detach().requiresGrad_(), weight.detach().requiresGrad_()]
        const out = F.relu(F.conv2d(leaf, weights, bias, { padding: layer.padding }).add(1))
        out.mul(out).sum().backward()
        return [out.detach(), leaf.grad as Tensor, (weights.grad as Tensor).mul(2)]
      }
      const exact = results(double(x), double(w), double(b))
      const strict = withStrict(true, () => results(x, w, b))
      for (const actual of [results(x, w, b), compile(results)(x, w, b)]) {
        actual.forEach((value, i) => {
          const [reference, bound] = [exact[i] as Tensor, strict[i] as Tensor]
          expect(largest(double(value).sub(reference))).toBeLessThan(1.5 * largest(double(bound).sub(reference)))
        })
      }
      compile(results, { options: { convolution: 'fast' } })(x, w, b).forEach((value, i) => {
        const [reference, bound] = [exact[i] as Tensor, strict[i] as Tensor]
        expect(largest(double(value).sub(reference))).toBeLessThan(8 * largest(double(bound).sub(reference)))
      })
    })
  }

  test('keep the order channel, y, x of their sums in strict code, eager and compiled', () => {
    const layer = { batch: 2, channels: 17, features: 16, size: [8, 8], padding: 1, why: '' } as const
    const [x, w, b] = inputs(layer)
    const f = (input: Tensor, weight: Tensor, bias: Tensor): Tensor => F.conv2d(input, weight, bias, { padding: 1 })
    const expected = strictSums(x, w, b, 1)
    expect(withStrict(true, () => f(x, w, b)).toTypedArray()).toEqual(expected)
    expect(compile(f, { options: { strict: true } })(x, w, b).toTypedArray()).toEqual(expected)
    // Other code adds in another order.
    expect(f(x, w, b).toTypedArray()).not.toEqual(expected)
    expect(compile(f)(x, w, b).toTypedArray()).not.toEqual(expected)
  })

  describe('of functions that are compiled with fast convolutions', () => {
    const [x, w, b] = inputs({ batch: 1, channels: 16, features: 16, size: [16, 16], padding: 1, why: '' })
    const f = (input: Tensor, weight: Tensor): Tensor => F.conv2d(input, weight, b, { padding: 1 })
    const gradients = (input: Tensor, weight: Tensor): readonly (Tensor | null)[] => {
      const [leaf, weights] = [input.detach().requiresGrad_(), weight.detach().requiresGrad_()]
      f(leaf, weights).sum().backward()
      return [leaf.grad, weights.grad]
    }
    const fast = { options: { convolution: 'fast' } } as const
    const values = (t: Tensor | null | undefined): unknown => t?.toTypedArray()

    test('have other sums, as have the gradients of their images, but not those of their weights', () => {
      expect(values(compile(f, fast)(x, w))).not.toEqual(values(compile(f)(x, w)))
      const [[images, weights], [fastImages, fastWeights]] = [compile(gradients)(x, w), compile(gradients, fast)(x, w)]
      expect(values(fastImages)).not.toEqual(values(images))
      expect(values(fastWeights)).toEqual(values(weights))
    })

    test('are those of eager mode where the graph breaks', () => {
      const compiled = compile((input: Tensor) => f(input, w).add(1), fast)(x)
      const broken = compile((input: Tensor) => disable(() => f(input, w))().add(1), fast)(x)
      expect(largest(broken.sub(compiled))).toBeLessThan(1e-6)
      expect(values(broken)).not.toEqual(values(f(x, w).add(1)))
    })

    test('hold for the functions that they call, unless those say otherwise, and end with the call', () => {
      const [inner, usual] = [compile(f), compile(f, { options: { convolution: 'default' } })]
      const plain = values(compile(f)(x, w))
      const called = compile((input: Tensor) => [disable(() => inner(input, w))(), disable(() => usual(input, w))()], fast)(x)
      expect(values(called[0])).toEqual(values(compile(f, fast)(x, w)))
      expect(values(called[1])).toEqual(plain)
      expect(values(inner(x, w))).toEqual(plain)
    })

    test('are strict while deterministic algorithms are on', () => {
      const strict = values(compile(f, { options: { strict: true } })(x, w))
      torch.useDeterministicAlgorithms(true)
      try {
        expect(values(compile(f, fast)(x, w))).toEqual(strict)
      } finally {
        torch.useDeterministicAlgorithms(false)
      }
      expect(values(compile(f, { options: { strict: false, convolution: 'fast' } })(x, w))).toEqual(values(compile(f, fast)(x, w)))
    })

    test('cannot be strict too, and have no other names', () => {
      expect(() => compile(f, { options: { strict: true, convolution: 'fast' } })).toThrow(
        "compile: options.strict is true and options.convolution is 'fast', which strict code leaves out: leave one of them out.",
      )
      // @ts-expect-error there is no such way
      expect(() => compile(f, { options: { convolution: 'faster' } })).toThrow(
        "compile: argument 'options.convolution' must be 'default' or 'fast', got 'faster'",
      )
    })
  })

  test('take images in any layout, and share their kernels', () => {
    const [x, w, b] = inputs({ batch: 2, channels: 16, features: 16, size: [9, 9], padding: 1, why: '' })
    const expected = F.conv2d(x, w, b, { padding: 1 })
    const last = x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    const window = torch.nn.functional.pad(x, [2, 3, 1, 1]).slice(3, 2, 11).slice(2, 1, 10)
    const threeCalls = (): number => {
      for (let i = 0; i < 3; i++) expect(F.conv2d(x, w, b, { padding: 1 }).equal(expected)).toBe(true)
      return kernelsByCall.size.entries
    }
    // The third call in a row that finds the weight unchanged keeps it transformed, and has a kernel that reads it so.
    const entries = threeCalls()
    expect(threeCalls()).toBe(entries)
    for (const input of [last, window]) {
      expect(input.isContiguous()).toBe(false)
      expect(F.conv2d(input, w, b, { padding: 1 }).equal(expected)).toBe(true)
      expect(
        compile((t: Tensor) => F.conv2d(t, w, b, { padding: 1 }))(input)
          .sub(expected)
          .abs()
          .max()
          .item(),
      ).toBeLessThan(1e-5)
    }
  })

  test('run directly where there is no room for what the algorithm keeps', () => {
    const [x, w, b] = inputs({ batch: 1, channels: 32, features: 32, size: [12, 12], padding: 1, why: '' })
    const f = (input: Tensor): Tensor => F.conv2d(input, w, b, { padding: 1 })
    const direct = withStrict(true, () => f(x))
    for (const run of [f, compile(f)]) {
      const usual = run(x)
      let fellBack = 0
      for (let nth = 1; ; nth++) {
        torch.memory.emptyCache()
        const { failed, outcome } = withFailingAllocation(nth, () => run(x))
        if (!failed) break
        if ('threw' in outcome) {
          expect(outcome.threw).toBeInstanceOf(OutOfMemoryError)
          continue
        }
        const result = outcome.returned
        expect(largest(result.sub(direct))).toBeLessThan(1e-4)
        // The direct sums are other bits than usual.
        if (!result.equal(usual)) fellBack++
      }
      expect(fellBack).toBe(1)
    }
  })
})
