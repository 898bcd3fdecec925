// PyTorch's primitive operators in terms of ours, so that graphs that PyTorch captured run here.
import { grad, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { F } from 'tensorfx/nn'
import type { GoldenNode, GoldenValue } from '../fx/samples/golden.ts'

// eslint-disable-next-line typescript/no-explicit-any -- arguments as the graph has them
type Op = (...args: any[]) => unknown

/** The gradients of `fn` at `inputs`, for the gradient `g` of its result. */
function gradients(fn: (...inputs: readonly Tensor[]) => Tensor, inputs: readonly Tensor[], g: Tensor): readonly unknown[] {
  const leaves = inputs.map((x) => x.detach().requiresGrad_())
  return grad(
    fn(...leaves)
      .mul(g)
      .sum(),
    leaves,
  )
}

const batchNorm = (x: Tensor, weight: Tensor, bias: Tensor, eps: number): Tensor => F.batchNorm(x, null, null, { weight, bias, training: true, eps })

function batchStatistics(x: Tensor, eps: number): readonly [Tensor, Tensor] {
  const [variance, mean] = torch.varMean(x, [0, 2, 3], { correction: 0 }) as readonly [Tensor, Tensor]
  return [mean, variance.add(eps).rsqrt()]
}

const aten: Readonly<Record<string, Op>> = {
  t: (x: Tensor) => x.t(),
  addmm: torch.addmm as Op,
  mm: torch.mm as Op,
  bmm: torch.bmm as Op,
  relu: torch.relu as Op,
  cos: torch.cos as Op,
  detach: (x: Tensor) => x.detach(),
  mul: (x: Tensor, y: Tensor) => x.mul(y),
  div: (x: Tensor, y: number) => x.div(y),
  add: (x: Tensor, y: number) => x.add(y),
  add_: (x: Tensor, y: number) => x.add(y),
  sum: (x: Tensor, dim: number[], keepdim: boolean) => x.sum(dim, keepdim),
  view: (x: Tensor, size: number[]) => x.reshape(size),
  _unsafe_view: (x: Tensor, size: number[]) => x.reshape(size),
  expand: (x: Tensor, size: number[]) => x.expand(size),
  transpose: (x: Tensor, a: number, b: number) => x.transpose(a, b),
  cat: (tensors: Tensor[], dim: number) => torch.cat(tensors, dim),
  split: (x: Tensor, size: number, dim: number) => x.split(size, { dim }),
  empty: (size: number[]) => torch.zeros(size),
  gelu: F.gelu as Op,
  gelu_backward: (g: Tensor, x: Tensor) => gradients((y) => F.gelu(y as Tensor), [x], g)[0],
  threshold_backward: (g: Tensor, x: Tensor, threshold: number) => torch.where(x.gt(threshold), g, 0),
  _softmax: (x: Tensor, dim: number) => torch.softmax(x, dim),
  _softmax_backward_data: (g: Tensor, y: Tensor, dim: number) => g.mul(y).sub(y.mul(g.mul(y).sum(dim, true))),
  convolution: (x: Tensor, w: Tensor, b: Tensor, stride: [number, number], padding: [number, number]) => F.conv2d(x, w, b, { stride, padding }),
  convolution_backward: (g: Tensor, x: Tensor, w: Tensor, _bias: unknown, stride: [number, number], padding: [number, number]) => [
    null,
    gradients((v) => F.conv2d(x, v as Tensor, null, { stride, padding }), [w], g)[0],
    g.sum([0, 2, 3]),
  ],
  native_batch_norm: (x: Tensor, w: Tensor, b: Tensor, _mean: unknown, _var: unknown, _training: boolean, _momentum: number, eps: number) => [
    batchNorm(x, w, b, eps),
    ...batchStatistics(x, eps),
  ],
  _native_batch_norm_legit_functional: (
    x: Tensor,
    w: Tensor,
    b: Tensor,
    mean: Tensor,
    variance: Tensor,
    _t: boolean,
    momentum: number,
    eps: number,
  ) => {
    const [running, runningVar] = [mean.clone(), variance.clone()]
    const y = F.batchNorm(x, running, runningVar, { weight: w, bias: b, training: true, momentum, eps })
    return [y, ...batchStatistics(x, eps), running, runningVar]
  },
  native_batch_norm_backward: (g: Tensor, x: Tensor, w: Tensor, ...rest: unknown[]) =>
    gradients((y, v, b) => batchNorm(y as Tensor, v as Tensor, b as Tensor, rest[5] as number), [x, w, w.mul(0)], g),
  native_layer_norm: (x: Tensor, shape: number[], weight: Tensor, bias: Tensor, eps: number) => [
    F.layerNorm(x, shape, { weight, bias, eps }),
    x.mean(-1, true),
    torch.var(x, -1, { correction: 0, keepdim: true }).add(eps).rsqrt(),
  ],
  native_layer_norm_backward: (g: Tensor, x: Tensor, shape: number[], _mean: unknown, _rstd: unknown, w: Tensor, b: Tensor) =>
    gradients((y, weight, bias) => F.layerNorm(y as Tensor, shape, { weight: weight as Tensor, bias: bias as Tensor }), [x, w, b], g),
  max_pool2d_with_indices: (x: Tensor, size: number) => (F.maxPool2dWithIndices as Op)(x, size, null, 0, 1, false),
  max_pool2d_with_indices_backward: (g: Tensor, x: Tensor, size: number) => gradients((y) => F.maxPool2d(y as Tensor, size), [x], g)[0],
}

/** Runs nodes that PyTorch captured; `given` has the values of placeholders and attributes by name. Returns every value by name; `output` among them. */
export function runAten(nodes: readonly GoldenNode[], given: ReadonlyMap<string, unknown>): Map<string, unknown> {
  const values = new Map(given)
  const value = (v: GoldenValue): unknown => {
    if (Array.isArray(v)) return (v as readonly GoldenValue[]).map(value)
    if (typeof v !== 'object' || v === null) return v
    if ('node' in v) return values.get(v.node)
    if ('tuple' in v) return v.tuple.map(value)
    return 'float' in v ? Number(v.float) : null
  }
  for (const { op, name, target, args } of nodes) {
    if (op === 'placeholder' || op === 'get_attr') continue
    const inputs = args.map(value)
    const [, primitive = ''] = /^torch\.ops\.aten\.(\w+)\./.exec(target) ?? []
    if (op === 'output') values.set('output', inputs[0])
    else if (target === 'operator.getitem') values.set(name, (inputs[0] as readonly unknown[])[inputs[1] as number])
    else if (aten[primitive] === undefined) throw new Error(`there is nothing for ${target}`)
    else values.set(name, aten[primitive](...inputs))
  }
  return values
}
