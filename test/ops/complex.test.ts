// Complex numbers: derivatives against differences, compile, vmap and jvp against eager mode, views, files, and what is refused.
import { Tensor, compile, torch } from 'tensorfx'
import { gradcheck, gradgradcheck } from 'tensorfx/autograd'
import { jacrev, jvp, vmap } from 'tensorfx/func'
import { readSafetensors, writeSafetensors } from 'tensorfx/interop'
import { describe, expect, it } from 'vitest'
import { complexRules } from '../../src/ops/complex/handler.ts'
import { allOps } from '../../src/ops/define/table.ts'

const drawn = (shape: readonly number[], seed: number): Tensor => {
  const generator = new torch.Generator().manualSeed(seed)
  return torch.randn(shape, { dtype: 'complex128', generator })
}
const [z, w, matrix] = [drawn([3], 1), drawn([3], 2), drawn([2, 3], 3)]

/** Functions of one tensor of three complex numbers. */
const FUNCTIONS: Readonly<Record<string, (x: Tensor) => Tensor>> = {
  abs: (x) => x.abs(),
  angle: (x) => x.angle(),
  conj: (x) => x.conj(),
  real: (x) => x.real(),
  imag: (x) => x.imag(),
  product: (x) => x.mul(w),
  'product with a real tensor': (x) => x.mul(torch.tensor([1, 2, 3], { dtype: 'float64' })),
  quotient: (x) => torch.div(w, x),
  reciprocal: (x) => x.reciprocal(),
  'sum and difference': (x) => x.add(w, { alpha: 2 }).sub(1),
  'power of a number': (x) => x.pow(3),
  'power of a tensor': (x) => torch.pow(x, w),
  exp: (x) => x.exp(),
  expm1: (x) => x.expm1(),
  log: (x) => x.log(),
  log1p: (x) => x.log1p(),
  sqrt: (x) => x.sqrt(),
  sin: (x) => x.sin(),
  cos: (x) => x.cos(),
  tan: (x) => x.tan(),
  sinh: (x) => x.sinh(),
  cosh: (x) => x.cosh(),
  tanh: (x) => x.tanh(),
  asin: (x) => x.asin(),
  acos: (x) => x.acos(),
  atan: (x) => x.atan(),
  asinh: (x) => x.asinh(),
  acosh: (x) => x.acosh(),
  atanh: (x) => x.atanh(),
  sigmoid: (x) => x.sigmoid(),
  sgn: (x) => torch.sgn(x),
  mean: (x) => x.mean(),
  prod: (x) => x.prod(),
  cumprod: (x) => x.cumprod(0),
  variance: (x) => torch.var(x),
  matmul: (x) => matrix.matmul(x),
  outer: (x) => torch.outer(x, w),
  einsum: (x) => torch.einsum('i,j->ij', [x, w]),
  vdot: (x) => torch.vdot(x, w),
  where: (x) => torch.where(torch.tensor([true, false, true]), x, w),
  index: (x) => torch.indexSelect(x, 0, torch.tensor([2, 0, 2], { dtype: 'int64' })),
  views: (x) => x.reshape(3, 1).expand(3, 2).t().select(0, 1).flip([0]),
  norm: (x) => torch.linalg.vectorNorm(x),
  logaddexp: (x) => torch.logaddexp(x, w),
  logsumexp: (x) => torch.logsumexp(x, 0),
  logcumsumexp: (x) => torch.logcumsumexp(x, 0),
  'numbers as operands': (x) => x.mul({ re: 0, im: 2 }).add({ re: 1, im: -1 }).pow({ re: 0.5, im: 0.25 }),
  'a number in the place of some': (x) => torch.where(torch.tensor([true, false, true]), x, { re: 1, im: 2 }),
  fft: (x) => torch.fft.fft(x, { n: 5 }),
  ifft: (x) => torch.fft.ifft(x, { norm: 'ortho' }),
  irfft: (x) => torch.fft.irfft(x),
  hfft: (x) => torch.fft.hfft(x, { n: 5 }),
  'rfft of the absolute values': (x) => torch.fft.rfft(x.abs()),
}
const named = Object.entries(FUNCTIONS)

describe('derivatives of functions of complex numbers are those of differences', () => {
  it.each(named)('%s', (_name, fn) => {
    expect(gradcheck(fn, [z.clone().requiresGrad_()])).toBe(true)
  })
  it.each(named.filter(([name]) => /^(product|exp|abs|quotient|fft|irfft|matmul|log)$/.test(name)))('%s, twice', (_name, fn) => {
    expect(gradgradcheck(fn, [z.clone().requiresGrad_()])).toBe(true)
  })
  it('a gradient is dL/dRe + i dL/dIm', () => {
    const x = torch.tensor([{ re: 3, im: 4 }]).requiresGrad_()
    x.abs().square().sum().backward()
    expect(x.grad?.toArray()).toEqual([{ re: 6, im: 8 }])
  })
  it('real operands have real gradients', () => {
    const r = torch.tensor([1, 2, 3], { dtype: 'float64', requiresGrad: true })
    r.mul(z).abs().sum().backward()
    expect(r.grad?.dtype).toBe('float64')
  })
  it('a complex result has no gradient of its own', () => {
    expect(() => z.clone().requiresGrad_().sum().backward()).toThrow(/the gradient of a complex output of dtype complex128 must be given/)
  })
})

describe('compiled, batched and forward', () => {
  const close = (actual: Tensor, wanted: Tensor): void => {
    expect(actual.dtype).toBe(wanted.dtype)
    expect(torch.allclose(actual.detach(), wanted.detach(), { rtol: 1e-10, atol: 1e-12 })).toBe(true)
  }
  it.each(named)('%s', (_name, fn) => {
    close(compile(fn)(z), fn(z))
    const batch = torch.stack([z, w])
    close(vmap(fn)(batch), torch.stack([fn(z), fn(w)]))
    const step = 1e-6
    const [, tangent] = jvp(fn, [z], [w])
    const differences = fn(z.add(w.mul(step)))
      .sub(fn(z.sub(w.mul(step))))
      .div(2 * step)
    expect(torch.allclose(tangent as Tensor, differences, { rtol: 1e-5, atol: 1e-6 })).toBe(true)
  })
  it('gradients of a compiled function are those of eager mode', () => {
    const loss = (x: Tensor): Tensor => torch.fft.fft(x.exp().mul(w)).abs().sum()
    const [a, b] = [z.clone().requiresGrad_(), z.clone().requiresGrad_()]
    loss(a).backward()
    compile(loss)(b).backward()
    close(b.grad as Tensor, a.grad as Tensor)
  })
  it('writes to inputs, and inputs that are views, are those of eager mode', () => {
    const [a, b] = [matrix.clone(), matrix.clone()]
    const write = (x: Tensor): Tensor => x.t().select(0, 1).mul(2).add(1)
    close(compile(write)(b.t()), write(a.t()))
    const change = (x: Tensor): Tensor => x.mul_(2).add_(1)
    change(a)
    compile(change)(b)
    close(b, a)
  })
})

describe('one kernel over pairs computes what the operators compute one after another', () => {
  const short: readonly (readonly [string, (a: Tensor, b: Tensor) => Tensor])[] = [
    ['mul', (a, b) => a.mul(b)],
    ['div', (a, b) => a.div(b)],
    ['reciprocal', (a) => a.reciprocal()],
    ['square', (a) => a.square()],
    ['exp', (a) => a.exp()],
  ]
  it.each(short)('%s', (_name, fn) => {
    for (const dtype of ['complex64', 'complex128'] as const)
      for (const [a, b] of [
        [drawn([7], 1), drawn([7], 2)],
        [drawn([2, 65], 3), drawn([2, 65], 4)],
        [drawn([0], 5), drawn([0], 6)],
        [drawn([4, 3], 7).t(), drawn([3, 4], 8)],
        [drawn([3, 1], 9), drawn([4], 10)],
        [drawn([9], 11).narrow(0, 2, 5), drawn([5], 12)],
      ].map((pair) => pair.map((t) => t.to(dtype))) as [Tensor, Tensor][]) {
        // With a gradient to come the operators run one after another.
        const composed = fn(a.detach().requiresGrad_(), b).detach()
        const result = fn(a, b)
        expect([result.dtype, result.shape]).toEqual([dtype, composed.shape])
        const tolerance = dtype === 'complex64' ? 1e-5 : 1e-13
        expect(torch.allclose(result, composed, { rtol: tolerance, atol: tolerance })).toBe(true)
      }
  })
})

describe('views', () => {
  it('viewAsReal, real and imag share memory with what they are of; conj does not (difference: conj-at-once)', () => {
    const x = torch.tensor([
      { re: 1, im: 2 },
      { re: 3, im: 4 },
    ])
    torch.viewAsReal(x).mul_(2)
    x.imag().fill_(7)
    x.conj().mul_(0)
    expect(x.toArray()).toEqual([
      { re: 2, im: 7 },
      { re: 6, im: 7 },
    ])
    expect(torch.viewAsComplex(torch.viewAsReal(x)).storage).toBe(x.storage)
  })
  it('a transposed window of a matrix has the numbers of the matrix', () => {
    const part = torch.viewAsReal(matrix.t().narrow(0, 1, 2))
    expect(part.contiguous().reshape(-1).toArray()).toEqual(
      torch.stack([matrix.real(), matrix.imag()], -1).transpose(0, 1).narrow(0, 1, 2).reshape(-1).toArray(),
    )
  })
  it('writes to views are differentiated', () => {
    const x = z.clone().requiresGrad_()
    const y = x.clone()
    y.select(0, 1).mul_(w.select(0, 0))
    y.abs().sum().backward()
    const other = z.clone().requiresGrad_()
    torch
      .cat([other.narrow(0, 0, 1), other.narrow(0, 1, 1).mul(w.select(0, 0)), other.narrow(0, 2, 1)])
      .abs()
      .sum()
      .backward()
    expect(torch.allclose(x.grad as Tensor, other.grad as Tensor)).toBe(true)
  })
})

describe('files and messages', () => {
  it('safetensors keep complex numbers', () => {
    const tensors = new Map([
      ['z', z],
      ['m', matrix.to('complex64').t()],
    ])
    const read = readSafetensors(writeSafetensors(tensors)).tensors
    for (const [name, tensor] of tensors) {
      expect(read.get(name)?.dtype).toBe(tensor.dtype)
      expect(torch.equal(read.get(name) as Tensor, tensor)).toBe(true)
    }
  })
  it('a message to a worker, and JSON, keep them', () => {
    expect(torch.equal(torch.fromTransfer(matrix.t().transfer()), matrix.t())).toBe(true)
    const { dtype, shape, data } = JSON.parse(JSON.stringify(z)) as { dtype: 'complex128'; shape: number[]; data: { re: number; im: number }[] }
    expect(torch.equal(torch.tensor(data, { dtype }).reshape(shape), z)).toBe(true)
  })
})

describe('what is not implemented is refused', () => {
  const one = torch.tensor([
    [
      { re: 1, im: 2 },
      { re: 3, im: 4 },
    ],
    [
      { re: 5, im: 6 },
      { re: 7, im: 9 },
    ],
  ])
  /** The operators that take a tensor first, and need no other argument. */
  const unary = allOps().filter(
    ({ schema }) => schema.args[0]?.type.base === 'Tensor' && !schema.args[0].type.list && schema.args.slice(1).every((arg) => arg.hasDefault),
  )
  it('operators without a rule throw a DTypeError that names the operator and the dtype (difference: complex-by-rule)', () => {
    const wrong = unary.filter(({ qualname, fn, aliasOf, tags }) => {
      if (Object.hasOwn(complexRules, qualname) || aliasOf !== null || tags.has('mutates')) return false
      try {
        Reflect.apply(fn as () => unknown, null, [one])
        return true
      } catch (error) {
        return !(error instanceof Error && error.name === 'DTypeError' && error.message.includes('complex64'))
      }
    })
    expect(unary.length).toBeGreaterThan(150)
    expect(wrong.map(({ qualname }) => qualname)).toEqual([])
  })
  it('a rule is that of an operator that there is', () => {
    const names = new Set(allOps().map(({ qualname }) => qualname))
    expect(Object.keys(complexRules).filter((name) => !names.has(name))).toEqual([])
  })
  it('in-place operators without one leave self as it is', () => {
    const x = one.clone()
    for (const write of [() => x.floor_(), () => x.abs_(), () => torch.ones([2, 2]).mul_(x), () => x.lt_(x)]) expect(write).toThrow(/complex64/)
    expect(torch.equal(x, one)).toBe(true)
  })
  it('optimizers and Jacobians say that they are of real numbers (difference: complex-parameters)', () => {
    expect(() => new torch.optim.SGD([z.clone().requiresGrad_()], { lr: 0.1 })).toThrow(/SGD: a parameter has the dtype complex128/)
    expect(() => jacrev((x: Tensor) => x.abs())(z)).toThrow(/jacrev: Jacobians are of real tensors, got complex128/)
  })
  it('the data of a real tensor has no complex numbers', () => {
    expect(() => torch.tensor([{ re: 1, im: 2 }], { dtype: 'float32' })).toThrow(/the data has complex numbers, which are not values of float32/)
  })
})
