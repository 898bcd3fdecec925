// Which operator of a model runs in which dtype under autocast, as PyTorch recorded it below its autocast: ResNet-18 and a GPT with fused attention (test/goldens/around, 2.13), a GPT with attention
// written out and UNets (test/goldens/autocast, by scripts/autocast/record.py).
import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { Tensor, nn, torch } from 'tensorfx'
import { RecordMode, withMode } from 'tensorfx/dispatch'
import { example } from '../examples/run.ts'

type Call = readonly [op: string, inputs: readonly string[], outputs: readonly string[]]
interface Recorded {
  readonly name: string
  readonly dtype: 'bfloat16' | 'float16'
  readonly forward: readonly Call[]
  readonly casts: number
}
const golden = (path: string): Buffer => readFileSync(new URL(`../goldens/${path}`, import.meta.url))
const around: readonly Recorded[] = JSON.parse(gunzipSync(golden('around/autocast-models.json.gz')).toString('utf8'))
const own: readonly Recorded[] = JSON.parse(golden('autocast/models.json').toString('utf8'))
// 'odd' is a model whose program was not kept; its calls are those of autocastCalls.test.ts.
const recorded = [...around.filter(({ name }) => !name.startsWith('odd')), ...own]

class Block extends nn.Module {
  conv1: nn.Conv2d
  bn1: nn.BatchNorm2d
  conv2: nn.Conv2d
  bn2: nn.BatchNorm2d
  down: nn.Sequential | null

  constructor(from: number, to: number, stride: number) {
    super()
    this.conv1 = new nn.Conv2d(from, to, 3, { stride, padding: 1, bias: false })
    this.bn1 = new nn.BatchNorm2d(to)
    this.conv2 = new nn.Conv2d(to, to, 3, { padding: 1, bias: false })
    this.bn2 = new nn.BatchNorm2d(to)
    this.down = from === to ? null : new nn.Sequential(new nn.Conv2d(from, to, 1, { stride, bias: false }), new nn.BatchNorm2d(to))
  }
  override forward(x: Tensor): Tensor {
    const y = this.bn2(this.conv2(torch.relu(this.bn1(this.conv1(x)))))
    return torch.relu(y.add(this.down === null ? x : this.down(x)))
  }
}

const widths = [8, 8, 8, 16, 16, 24, 24, 32, 32]
const resnet = (): nn.Sequential =>
  new nn.Sequential(
    new nn.Conv2d(3, 8, 7, { stride: 2, padding: 3, bias: false }),
    ...[new nn.BatchNorm2d(8), new nn.ReLU(), new nn.MaxPool2d(3, { stride: 2, padding: 1 })],
    ...widths.slice(1).map((to, i) => new Block(widths[i] ?? 8, to, widths[i] === to ? 1 : 2)),
    ...[new nn.AdaptiveAvgPool2d(1), new nn.Flatten(1), new nn.Linear(32, 10)],
  )

class Layer extends nn.Module {
  ln1 = new nn.LayerNorm(16)
  qkv = new nn.Linear(16, 48)
  out = new nn.Linear(16, 16)
  ln2 = new nn.LayerNorm(16)
  up = new nn.Linear(16, 64)
  down = new nn.Linear(64, 16)

  /** Whether attention is one function, or written out. */
  readonly fused: boolean

  constructor(fused: boolean) {
    super()
    this.fused = fused
  }
  attention(q: Tensor, k: Tensor, v: Tensor): Tensor {
    if (this.fused) return nn.functional.scaledDotProductAttention(q, k, v, { isCausal: true })
    const future = torch.ones([6, 6], { dtype: 'bool' }).tril().logicalNot()
    const scores = q.matmul(k.transpose(2, 3)).mul(8 ** -0.5)
    return nn.functional.softmax(scores.maskedFill(future, -1e4), -1).matmul(v)
  }
  override forward(x: Tensor): Tensor {
    const heads = (y: Tensor): Tensor => y.view(2, 6, 2, 8).transpose(1, 2)
    const [q, k, v] = this.qkv(this.ln1(x)).split(16, 2).map(heads)
    if (q === undefined || k === undefined || v === undefined) throw new Error('three parts')
    const mixed = this.attention(q, k, v)
    const y = x.add(this.out(mixed.transpose(1, 2).reshape([2, 6, 16])))
    return y.add(this.down(nn.functional.gelu(this.up(this.ln2(y)))))
  }
}

class Gpt extends nn.Module {
  tokens = new nn.Embedding(20, 16)
  places = new nn.Embedding(6, 16)
  layers: nn.Sequential
  ln = new nn.LayerNorm(16)
  head = new nn.Linear(16, 20, { bias: false })

  constructor(fused: boolean) {
    super()
    this.layers = new nn.Sequential(new Layer(fused), new Layer(fused))
  }
  override forward(ids: Tensor): Tensor {
    return this.head(this.ln(this.layers(this.tokens(ids).add(this.places(torch.arange(6, { dtype: 'int64' }))))))
  }
}

const { UNet } = (await import(example('unet/model.mjs'))) as { readonly UNet: new (width: number) => nn.Module & { forward(x: Tensor): Tensor } }

/** Pools on its way down, and resizes on its way up. */
class PoolingUNet extends nn.Module {
  static layer = (from: number, to: number): nn.Sequential =>
    new nn.Sequential(new nn.Conv2d(from, to, 3, { padding: 1, bias: false }), new nn.BatchNorm2d(to), new nn.ReLU())
  a = PoolingUNet.layer(1, 4)
  b = PoolingUNet.layer(4, 8)
  c = PoolingUNet.layer(8, 8)
  d = PoolingUNet.layer(16, 4)
  e = PoolingUNet.layer(8, 4)
  last = new nn.Conv2d(4, 1, 1)

  override forward(x: Tensor): Tensor {
    const { maxPool2d, avgPool2d, interpolate } = nn.functional
    const a = this.a(x)
    const b = this.b(maxPool2d(a, 2))
    const c = this.c(avgPool2d(b, 2))
    const d = this.d(torch.cat([interpolate(c, { scaleFactor: 2, mode: 'bilinear', alignCorners: false }), b], 1))
    return this.last(this.e(torch.cat([interpolate(d, { scaleFactor: 2, mode: 'nearest' }), a], 1)))
  }
}

interface Network {
  readonly model: nn.Module
  readonly forward: () => Tensor
  readonly lossOf: (output: Tensor) => Tensor
}
const gpt = (fused: boolean) => (): Network => {
  const [model, ids] = [new Gpt(fused), torch.randint(0, 20, [2, 6])]
  return { model, forward: () => model(ids), lossOf: (scores) => nn.functional.crossEntropy(scores.view(-1, 20), ids.view(-1)) }
}

const NETWORKS: Readonly<Record<string, () => Network>> = {
  resnet18: () => {
    const [model, images] = [resnet(), torch.randn([2, 3, 32, 32])]
    return { model, forward: () => model(images), lossOf: (scores) => nn.functional.crossEntropy(scores, torch.tensor([1, 2], { dtype: 'int64' })) }
  },
  gpt_sdpa: gpt(true),
  gpt_plain: gpt(false),
  unet_pooling: () => {
    const [model, images, share] = [new PoolingUNet(), torch.randn([2, 1, 8, 8]), torch.rand([2, 1, 8, 8])]
    return { model, forward: () => model(images), lossOf: (scores) => nn.functional.binaryCrossEntropyWithLogits(scores, share) }
  },
  unet: () => {
    const [model, images] = [new UNet(4), torch.randn([2, 1, 8, 8])]
    return { model, forward: () => model(images), lossOf: (output) => nn.functional.mseLoss(output, images) }
  },
}

/** Operators of ours that are one of PyTorch's. Where ours is one that PyTorch computes by several, the others are left out. */
const OURS: Readonly<Record<string, string>> = {
  'torch.ops.tensorfx.to_copy': '_to_copy.default',
  'torch.ops.tensorfx.convolution': 'convolution.default',
  'torch.ops.tensorfx.native_batch_norm': 'native_batch_norm.default',
  'torch.relu': 'relu.default',
  'torch.ops.tensorfx.max_pool2d_with_indices': 'max_pool2d_with_indices.default',
  'torch.add': 'add.Tensor',
  'torch.mean': 'mean.dim',
  'torch.nn.functional.embedding': 'embedding.default',
  'torch.nn.functional.layer_norm': 'native_layer_norm.default',
  'torch.ops.tensorfx.native_layer_norm': 'native_layer_norm.default',
  'torch.nn.functional.gelu': 'gelu.default',
  'torch.nn.functional.linear': 'linear',
  'torch.bmm': 'bmm.default',
  'torch.mul': 'mul.Tensor',
  'torch.softmax': '_softmax.default',
  'torch.nn.functional.silu': 'silu.default',
  'torch.cat': 'cat.default',
  'torch.sub': 'sub.Tensor',
  'torch.nn.functional.avg_pool2d': 'avg_pool2d.default',
}

const GROUP_NORM = 'native_group_norm.default'
/** What fused attention is made of here, and is one operator in PyTorch. */
const ATTENTION = ['bmm.default', 'mul.Tensor', '_softmax.default']

/** The operator with the dtype of its first floating input and of its first output: what it computes in. Products with a bias and without are one operator here. */
const row = (op: string, inputs: readonly string[], outputs: readonly string[]): string =>
  `${op} ${inputs.find((dtype) => dtype !== 'int64') ?? ''} -> ${outputs[0] ?? ''}`

/** The same of a layer. A convolution's input is cast first. */
const rowOf = (module: nn.Module, x: Tensor, out: Tensor): string =>
  module instanceof nn.GroupNorm ? row(GROUP_NORM, [x.dtype], [out.dtype]) : row('convolution.default', [out.dtype], [out.dtype])

const dtypesIn = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.flatMap(dtypesIn) : value instanceof Tensor ? [value.dtype] : []

it.each(recorded)("$name: operators run in PyTorch's dtypes, in its order", ({ name, dtype, forward, casts }) => {
  const make = Object.entries(NETWORKS).find(([network]) => name.startsWith(network))?.[1]
  if (make === undefined) throw new Error(`${name} is not known`)
  const { model, forward: run, lossOf } = make()
  const [mode, lossMode] = [new RecordMode(), new RecordMode()]
  // Group norms and transposed convolutions can be several operators here: what a layer calls is one row.
  const whole: { readonly start: number; readonly end: number; readonly row: string }[] = []
  for (const module of model.modules())
    if (module instanceof nn.GroupNorm || module instanceof nn.ConvTranspose2d)
      module.forward = ((compute) => (x: Tensor) => {
        const start = mode.calls.length
        const out = compute.call(module, x)
        whole.push({ start, end: mode.calls.length, row: rowOf(module, x, out) })
        return out
      })(module.forward)
  const loss = torch.autocast({ dtype }, () => {
    const output = withMode(mode, run)
    return withMode(lossMode, () => lossOf(output))
  })
  // Losses are several operators here: all of them compute in float32.
  expect(loss.dtype).toBe('float32')
  expect(lossMode.calls.flatMap(({ op, result }) => (op.tags.has('view') ? [] : dtypesIn(result))).filter((one) => one === dtype)).toEqual([])
  const ours = mode.calls.flatMap(({ op, args, result }, i) => {
    const layer = whole.find(({ start, end }) => start <= i && i < end)
    if (layer !== undefined) return layer.start === i ? [layer.row] : []
    const known = OURS[op.qualname]
    return known === undefined || (name.startsWith('gpt_sdpa') && ATTENTION.includes(known)) ? [] : [row(known, dtypesIn(args), dtypesIn(result))]
  })
  const names = new Set([...Object.values(OURS), GROUP_NORM])
  const theirs = forward.flatMap(([op, inputs, outputs]) => {
    const short = op.replace(/^aten\./, '').replace(/^(?:addmm|mm)\.default$/, 'linear')
    return names.has(short) ? [row(short, inputs, outputs)] : []
  })
  expect(ours.filter((one) => !one.startsWith('_to_copy'))).toEqual(theirs.filter((one) => !one.startsWith('_to_copy')))
  // Each weight is cast once.
  const weights = mode.calls.flatMap(({ op, args: [x] }) =>
    op.qualname === 'torch.ops.tensorfx.to_copy' && x instanceof Tensor && x.isLeaf ? [x] : [],
  )
  expect(new Set(weights).size).toBe(weights.length)
  // Attention is several operators here, with casts of their own.
  const isCast = ({ op }: { readonly op: { readonly qualname: string } }): boolean => op.qualname === 'torch.ops.tensorfx.to_copy'
  if (name.startsWith('resnet18')) expect([...mode.calls, ...lossMode.calls].filter(isCast).length).toBe(casts)
})
