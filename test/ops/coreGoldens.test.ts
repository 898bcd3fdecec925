// PyTorch's outputs and gradients for pointwise operators, reductions, views and joins. Each line is the golden's own Python, in TypeScript.
import { test } from 'vitest'
import * as ops from '../../src/ops/index.ts'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { checkGolden } from './goldens.ts'

const { tensor } = torch

const F = torch.nn.functional
type Outputs = Tensor | readonly Tensor[]
const int = (data: number[] | number[][]): Tensor => tensor(data, { dtype: 'int32' })

const one: Record<string, (x: Tensor) => Outputs> = {
  softmax: (x) => F.softmax(x, -1),
  softmax_dim0: (x) => torch.softmax(x, 0),
  log_softmax: (x) => F.logSoftmax(x, -1),
  gelu: (x) => F.gelu(x),
  silu: (x) => F.silu(x),
  sigmoid: (x) => x.sigmoid(),
  tanh: (x) => x.tanh(),
  relu: (x) => F.relu(x),
  leaky_relu: (x) => F.leakyRelu(x, 0.1),
  elu: (x) => F.elu(x),
  erf: (x) => x.erf(),
  sin: (x) => x.sin(),
  cos: (x) => x.cos(),
  abs: (x) => x.abs(),
  floor: (x) => x.floor(),
  round: (x) => x.round(),
  expm1: (x) => x.expm1(),
  square: (x) => x.square(),
  pow3: (x) => x.pow(3),
  sqrt_abs: (x) => x.abs().add(0.1).sqrt(),
  rsqrt: (x) => x.abs().add(0.1).rsqrt(),
  log: (x) => x.abs().add(0.1).log(),
  reciprocal: (x) => x.add(10).reciprocal(),
  cumsum: (x) => torch.cumsum(x, 1),
  cumsum0: (x) => x.cumsum(0),
  sum_dim: (x) => x.sum(1, true),
  mean: (x) => x.mean(0),
  prod: (x) => x.prod(1),
  var: (x) => x.var(),
  var_unbiased_false: (x) => torch.var(x, 1, { correction: 0 }),
  std: (x) => x.std(1),
  std_correction0: (x) => torch.std(x, 0, { correction: 0 }),
  var_mean: (x) => torch.varMean(x, 1),
  std_mean: (x) => torch.stdMean(x, 1),
  norm1: (x) => x.norm(1),
  logsumexp: (x) => torch.logsumexp(x, 1),
  max_dim: (x) => torch.max(x, 1),
  min_all: (x) => x.min(),
  topk: (x) => torch.topk(x, 3),
  topk_smallest: (x) => torch.topk(x, 2, { dim: 0, largest: false }),
  sort: (x) => torch.sort(x, 1),
  sort_desc: (x) => x.sort(0, true),
  argmax: (x) => [torch.argmax(x), torch.argmax(x, 1), torch.argmin(x, 0, true)],
  tril: (x) => x.tril(),
  tril1: (x) => x.tril(1),
  triu: (x) => x.triu(-1),
  roll: (x) => torch.roll(x, 2, 1),
  transpose: (x) => x.t().contiguous(),
  pad_const: (x) => F.pad(x, [1, 2, 0, 1], { value: 0.5 }),
  pad_constant: (x) => F.pad(x, [1, 2, 1, 1], { mode: 'constant' }),
  masked_fill: (x) => x.maskedFill(x.gt(0.5), -7),
  repeat: (x) => x.repeat(2, 2),
  expand: (x) => x.unsqueeze(1).expand(3, 2, 5).mul(1),
  stack: (x) => torch.stack([x, x.mul(2)], 1),
  cat: (x) => torch.cat([x, x.add(1)], 1),
  split: (x) => torch.split(x, [2, 3], 1),
  unbind: (x) => x.unbind(0),
  any_all: (x) => [x.gt(0).any(1), x.gt(-9).all()],
  remainder: (x) => torch.remainder(x, 1.5),
  fmod: (x) => torch.fmod(x, 1.5),
  floor_divide: (x) => torch.floorDivide(x, 0.7),
  addcmul: (x) => torch.addcmul(x, x, x, { value: 0.5 }),
  gather1: (x) =>
    torch.gather(
      x,
      1,
      int([
        [3, 0],
        [1, 1],
        [2, 3],
      ]),
    ),
  take_along_dim: (x) => torch.gather(x, 1, x.argsort(1)),
}

test.each(Object.keys(one))('%s', (name) => {
  checkGolden(name, (inputs) => (one[name] as (x: Tensor) => Outputs)(Object.values(inputs)[0] as Tensor))
})

test('broadcast_add', () => checkGolden('broadcast_add', ({ a, b }) => ops.add(a as Tensor, b as Tensor)))

test('div_pow_max', () =>
  checkGolden('div_pow_max', (inputs) => {
    const [a, b] = [inputs.a as Tensor, inputs.b as Tensor]
    return [a.div(b.add(3)), torch.pow(a.abs().add(1), b), torch.maximum(a, b), torch.minimum(a, b)]
  }))

test.each(['bij,bjk->bik', 'bhqd,bhkd->bhqk', 'ii->i', 'ij->', 'i,j->ij', '...ij,...jk->...ik', 'ij,jk'])('einsum %s', (equation) => {
  checkGolden(`einsum ${equation}`, (inputs) => torch.einsum(equation, ...Object.values(inputs)))
})
