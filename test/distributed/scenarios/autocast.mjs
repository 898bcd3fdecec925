// autocast on several ranks: which operator computes in which dtype, gradients and losses, with DistributedDataParallel and FSDP, beside one process.
import { noGrad, nn, optim, torch } from 'tensorfx'
import { DistributedDataParallel, allReduce, getRank, getWorldSize } from 'tensorfx/distributed'
import { FullyShardedDataParallel, ShardedGradScaler, summonFullParams } from 'tensorfx/distributed/fsdp'
import { RecordMode, withMode } from 'tensorfx/dispatch'
import { flat } from './helpers.mjs'

const STEPS = 20
/** Divides by every number of ranks. */
const ROWS = 12

function makeNet() {
  torch.manualSeed(3)
  return new nn.Sequential(new nn.Linear(6, 16), new nn.LayerNorm(16), new nn.GELU(), new nn.Linear(16, 4))
}

const wrappers = {
  alone: (net) => net,
  ddp: (net) => new DistributedDataParallel(net),
  fsdp: (net) => new FullyShardedDataParallel(net, { useOrigParams: true }),
}

const dtypesIn = (value) => (Array.isArray(value) ? value.flatMap(dtypesIn) : value instanceof torch.Tensor ? [value.dtype] : [])

/** The operators that a network runs, with the dtypes of what they take and return. Ranks send, and show parameters as views: these are not of the network. */
const computed = ({ calls }) =>
  calls.flatMap(({ op, args, result }) =>
    /linear|layer_norm|gelu|softmax|nll_loss|addmm|\bmm\b/.test(op.qualname) ? [`${op.qualname} ${dtypesIn(args)} -> ${dtypesIn(result)}`] : [],
  )

function train(way, dtype) {
  const net = makeNet()
  const model = wrappers[way](net)
  const [rank, size] = way === 'alone' ? [0, 1] : [getRank(), getWorldSize()]
  const rows = (t) => t.narrow(0, (rank * ROWS) / size, ROWS / size)
  const optimizer = new optim.SGD(model.parameters(), { lr: 0.1 })
  const scaler =
    dtype === 'float16' ? (way === 'fsdp' ? new ShardedGradScaler({ initScale: 256 }) : new torch.amp.GradScaler({ initScale: 256 })) : null
  const losses = []
  let operators = []
  let gradients = []
  for (let step = 0; step < STEPS; step++) {
    torch.manualSeed(100 + step)
    const [x, y] = [torch.randn([ROWS, 6]), torch.randint(0, 4, [ROWS])].map(rows)
    optimizer.zeroGrad()
    const mode = new RecordMode()
    const compute = () => torch.autocast({ dtype }, () => nn.functional.crossEntropy(model(x), y))
    const loss = step === 0 ? withMode(mode, compute) : compute()
    ;(scaler === null ? loss : scaler.scale(loss)).backward()
    if (scaler !== null) scaler.unscale_(optimizer)
    if (step === 0) {
      operators = computed(mode)
      const read = () => [...net.parameters()].map(({ grad }) => ({ dtype: grad.dtype, data: flat(grad) }))
      gradients = way === 'fsdp' ? summonFullParams(model, read, { withGrads: true, writeback: false }) : read()
    }
    if (scaler === null) optimizer.step()
    else {
      scaler.step(optimizer)
      scaler.update()
    }
    const mean = loss.detach().clone()
    if (size > 1) noGrad(() => allReduce(mean, { op: 'avg' }))
    losses.push(mean.item())
  }
  return { operators, gradients, losses }
}

export const trained = () =>
  Object.fromEntries(
    ['bfloat16', 'float16'].map((dtype) => [dtype, Object.fromEntries(Object.keys(wrappers).map((way) => [way, train(way, dtype)]))]),
  )
