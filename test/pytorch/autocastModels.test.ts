// Which operator of a model runs in which dtype under autocast, as PyTorch 2.13 recorded it below its autocast (test/goldens/around): ResNet-18, and a GPT with fused attention.
import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { Tensor, nn, torch } from 'tensorfx'
import { RecordMode, withMode } from 'tensorfx/dispatch'

type Call = readonly [op: string, inputs: readonly string[], outputs: readonly string[]]
interface Recorded {
  readonly name: string
  readonly dtype: 'bfloat16' | 'float16'
  readonly forward: readonly Call[]
  readonly casts: number
}
const file = readFileSync(new URL('../goldens/around/autocast-models.json.gz', import.meta.url))
const recorded: readonly Recorded[] = JSON.parse(gunzipSync(file).toString('utf8'))

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

  override forward(x: Tensor): Tensor {
    const heads = (y: Tensor): Tensor => y.view(2, 6, 2, 8).transpose(1, 2)
    const [q, k, v] = this.qkv(this.ln1(x)).split(16, 2).map(heads)
    if (q === undefined || k === undefined || v === undefined) throw new Error('three parts')
    const mixed = nn.functional.scaledDotProductAttention(q, k, v, { isCausal: true })
    const y = x.add(this.out(mixed.transpose(1, 2).reshape([2, 6, 16])))
    return y.add(this.down(nn.functional.gelu(this.up(this.ln2(y)))))
  }
}

class Gpt extends nn.Module {
  tokens = new nn.Embedding(20, 16)
  places = new nn.Embedding(6, 16)
  layers = new nn.Sequential(new Layer(), new Layer())
  ln = new nn.LayerNorm(16)
  head = new nn.Linear(16, 20, { bias: false })

  override forward(ids: Tensor): Tensor {
    return this.head(this.ln(this.layers(this.tokens(ids).add(this.places(torch.arange(6, { dtype: 'int64' }))))))
  }
}

/** Makes the models, and what computes their losses. */
const LOSSES: Readonly<Record<string, () => () => Tensor>> = {
  resnet18: () => {
    const [model, images] = [resnet(), torch.randn([2, 3, 32, 32])]
    return () => nn.functional.crossEntropy(model(images), torch.tensor([1, 2], { dtype: 'int64' }))
  },
  gpt_sdpa: () => {
    const [model, ids] = [new Gpt(), torch.randint(0, 20, [2, 6])]
    return () => nn.functional.crossEntropy(model(ids).view(-1, 20), ids.view(-1))
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
  'torch.log_softmax': '_log_softmax.default',
  'torch.ops.tensorfx.nll_loss_forward': 'nll_loss_forward.default',
  'torch.nn.functional.embedding': 'embedding.default',
  'torch.nn.functional.layer_norm': 'native_layer_norm.default',
  'torch.ops.tensorfx.native_layer_norm': 'native_layer_norm.default',
  'torch.nn.functional.gelu': 'gelu.default',
  'torch.nn.functional.linear': 'linear',
}

/** The operator with the dtype of its first floating input and of its first output: what it computes in. Products with a bias and without are one operator here. */
const row = (op: string, inputs: readonly string[], outputs: readonly string[]): string =>
  `${op} ${inputs.find((dtype) => dtype !== 'int64') ?? ''} -> ${outputs[0] ?? ''}`

const dtypesIn = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.flatMap(dtypesIn) : value instanceof Tensor ? [value.dtype] : []

it.each(recorded.filter(({ name }) => /^(?:resnet18|gpt_sdpa)/.test(name)))(
  "$name: operators run in PyTorch's dtypes, in its order",
  ({ name, dtype, forward, casts }) => {
    const make = Object.entries(LOSSES).find(([model]) => name.startsWith(model))?.[1]
    if (make === undefined) throw new Error(`${name} is not known`)
    const compute = make()
    const mode = new RecordMode()
    const loss = withMode(mode, () => torch.autocast({ dtype }, compute))
    expect(loss.dtype).toBe('float32')
    const ours = mode.calls.flatMap(({ op, args, result }) => {
      const known = OURS[op.qualname]
      return known === undefined ? [] : [row(known, dtypesIn(args), dtypesIn(result))]
    })
    const names = new Set(Object.values(OURS))
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
    if (name.startsWith('resnet18')) expect(ours.filter((one) => one.startsWith('_to_copy')).length).toBe(casts)
  },
)
