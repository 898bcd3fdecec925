// Short-time Fourier transforms: PyTorch's recorded values and gradients for many options (test/goldens/around/stft.json), the way back, compile, vmap, and mistakes.
import { readFileSync } from 'node:fs'
import { Tensor, compile, torch } from 'tensorfx'
import { gradcheck } from 'tensorfx/autograd'
import { vmap } from 'tensorfx/func'
import { describe, expect, it } from 'vitest'
import { camelCase } from '../../pytorch/python.ts'

interface Numbers {
  readonly shape: readonly number[]
  readonly complex: boolean
  readonly values: readonly number[]
}
interface Recorded {
  readonly name: 'stft' | 'istft'
  readonly shape: readonly number[]
  readonly complex: boolean
  readonly input: readonly number[]
  readonly options: Readonly<Record<string, unknown>>
  readonly window: { readonly complex: boolean; readonly values: readonly number[] } | null
  readonly result: Numbers
  readonly gradient: readonly number[]
}
const recorded = JSON.parse(readFileSync(new URL('../../goldens/around/stft.json', import.meta.url), 'utf8')) as readonly Recorded[]

const tensorOf = ({ values, shape, complex }: Numbers): Tensor => {
  const numbers = torch.tensor(values, { dtype: 'float64' })
  return complex ? torch.viewAsComplex(numbers.reshape([...shape, 2])) : numbers.reshape(shape)
}
const near = (actual: Tensor, wanted: Tensor): void => {
  expect([actual.dtype, actual.shape]).toEqual([wanted.dtype, wanted.shape])
  expect(torch.allclose(actual.detach(), wanted, { rtol: 1e-8, atol: 1e-8 })).toBe(true)
}
/** The incoming gradient of the records. */
function incoming(like: Tensor): Tensor {
  const part = (fn: (i: number) => number): Tensor => torch.tensor(Float64Array.from({ length: like.numel }, (_, i) => fn(i))).reshape(like.shape)
  const re = part((i) => Math.cos(0.7 * i + 1))
  return like.isComplex()
    ? torch.complex(
        re,
        part((i) => Math.sin(0.5 * i + 2)),
      )
    : re
}

describe('PyTorch has these values and gradients', () => {
  it.each(recorded.map((one, i) => ({ one, name: `${one.name} of [${one.shape.join()}], ${JSON.stringify(one.options)}, number ${i}` })))(
    '$name',
    ({ one }) => {
      const { n_fft: nFft, ...rest } = one.options
      const window =
        one.window === null ? {} : { window: tensorOf({ ...one.window, shape: [one.window.values.length / (one.window.complex ? 2 : 1)] }) }
      const options = { ...Object.fromEntries(Object.entries(rest).map(([name, value]) => [camelCase(name), value])), ...window }
      const run = (x: Tensor): Tensor => torch[one.name](x, Number(nFft), options)
      const input = tensorOf({ values: one.input, shape: one.shape, complex: one.complex }).requiresGrad_()
      const result = run(input)
      near(result, tensorOf(one.result))
      result.backward(incoming(result))
      near(input.grad as Tensor, tensorOf({ values: one.gradient, shape: one.shape, complex: one.complex }))
      near(compile(run)(input.detach()), tensorOf(one.result))
    },
  )
})

describe('signals', () => {
  const signal = torch.randn([2, 40], { dtype: 'float64', generator: new torch.Generator().manualSeed(1) })
  it.each([
    [8, {}],
    [9, { hopLength: 2 }],
    [8, { hopLength: 4, window: torch.hannWindow(8, true, { dtype: 'float64' }) }],
    [16, { hopLength: 3, winLength: 10, normalized: true }],
    [7, { hopLength: 3, onesided: false }],
  ] as const)('come back: nFft %i, %o', (nFft, options) => {
    near(torch.istft(torch.stft(signal, nFft, options), nFft, { ...options, length: 40 }), signal)
    near(signal.stft(nFft, options).istft(nFft, { ...options, length: 40 }), signal)
  })
  it('of a batch are those of each signal', () => {
    const one = (x: Tensor): Tensor => torch.stft(x, 8, { hopLength: 3 })
    near(vmap(one)(signal), torch.stft(signal, 8, { hopLength: 3 }))
  })
  it('have derivatives, twice, and the window too', () => {
    const [x, window] = [signal.narrow(1, 0, 10).clone().requiresGrad_(), torch.ones([4], { dtype: 'float64', requiresGrad: true })]
    expect(gradcheck((a: Tensor, w: Tensor) => torch.stft(a, 4, { window: w }).abs().square(), [x, window])).toBe(true)
    expect(gradcheck((a: Tensor, w: Tensor) => torch.istft(torch.stft(a, 4), 4, { window: w }), [x, window])).toBe(true)
  })
})

describe('mistakes say what to change', () => {
  const x = torch.ones([20])
  const z = torch.stft(x, 4)
  it.each([
    [() => torch.stft(x, 30, { center: false }), /argument 'nFft' must be at most the length of the signal, 20, got 30/],
    [() => torch.stft(x, 0), /argument 'nFft' must be at least 1, got 0/],
    [() => torch.stft(x, 2), /argument 'hopLength' must be at least 1, got 0, a quarter of nFft/],
    [() => torch.stft(x, 4, { winLength: 5 }), /argument 'winLength' must be from 1 to nFft, 4, got 5/],
    [() => torch.stft(x, 4, { window: torch.ones([5]) }), /argument 'window' must have shape \[4\], that of winLength, got \[5\]/],
    [() => torch.stft(x, 4, { padMode: 'mirror' }), /argument 'padMode' must be one of constant, reflect, replicate, circular, got 'mirror'/],
    [() => torch.stft(torch.ones([2, 2, 20]), 4), /self must have the shape \[n\] or \[batch, n\], got \[2, 2, 20\]/],
    [() => torch.stft(x.int(), 4), /expected floating-point or complex numbers, got int32/],
    [() => torch.stft(x.to('complex64'), 4, { onesided: true }), /complex numbers have no half transform/],
    [() => torch.istft(x.reshape(2, 10), 4), /self must be complex, as torch.stft gives it, got float32/],
    [() => torch.istft(z, 6), /self must have 4 frequencies for nFft 6, got shape \[3, 21\]/],
    [() => torch.istft(z, 4, { returnComplex: true }), /a half transform gives real signals/],
    [() => torch.istft(z, 4, { window: torch.zeros([4]) }), /the windows leave elements of the signal without a value/],
    [() => torch.istft(z, 4, { hopLength: 5 }), /argument 'hopLength' must be at most winLength, got 5/],
  ])('%s', (run, message) => {
    expect(run).toThrow(message)
  })
})
