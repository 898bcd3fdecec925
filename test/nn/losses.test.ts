// Losses as layers: each is its function with the options of the layer, eager, compiled and as a node of a graph. Values of the functions are compared in test/pytorch.
import { describe, expect, test } from 'vitest'
import { compile, fx, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { detInput } from '../helpers/deterministic.ts'

const F = torch.nn.functional
const x = detInput([3, 4], 1, 2, -1)
const y = detInput([3, 4], 2, 2, -1)
const z = detInput([3, 4], 3, 2, -1)
const signs = torch.tensor([1, -1, 1])
const classes = torch.tensor([2, 0, 3]).long()
const labels = torch
  .tensor([
    [2, 0, -1, 1],
    [3, -1, 0, 0],
    [0, 1, 2, 3],
  ])
  .long()
const weight = torch.tensor([1, 0.5, 2, 3])
const furthest = (a: Tensor, b: Tensor): Tensor => a.sub(b).abs().amax(-1)
const paths = detInput([5, 2, 4], 4).logSoftmax(2)
const spelled = torch
  .tensor([
    [1, 2],
    [3, 3],
  ])
  .long()

type Loss = (...tensors: Tensor[]) => Tensor
/** The layer, the function that it stands for, and what both get. */
type Row = readonly [name: string, layer: nn.Module, fn: Loss, inputs: readonly Tensor[]]
const row = (layer: nn.Module, fn: Loss, ...inputs: readonly Tensor[]): Row => [layer.getName(), layer, fn, inputs]
/** The loss of a layer, or of a compiled one. */
const lossOf = (layer: (...args: never[]) => unknown, inputs: readonly Tensor[]): Tensor => Reflect.apply(layer, null, inputs)

const rows = (['mean', 'sum', 'none'] as const).flatMap((reduction): readonly Row[] => [
  row(new nn.SoftMarginLoss({ reduction }), (a: Tensor, t: Tensor) => F.softMarginLoss(a, t, { reduction }), x, y.sign()),
  row(new nn.HingeEmbeddingLoss(0.5, { reduction }), (a: Tensor, t: Tensor) => F.hingeEmbeddingLoss(a, t, { margin: 0.5, reduction }), x, y.sign()),
  row(
    new nn.MarginRankingLoss(0.2, { reduction }),
    (a: Tensor, b: Tensor, t: Tensor) => F.marginRankingLoss(a, b, t, { margin: 0.2, reduction }),
    x,
    y,
    z.sign(),
  ),
  row(
    new nn.CosineEmbeddingLoss({ margin: 0.1, reduction }),
    (a: Tensor, b: Tensor, t: Tensor) => F.cosineEmbeddingLoss(a, b, t, { margin: 0.1, reduction }),
    x,
    y,
    signs,
  ),
  row(
    new nn.MultiMarginLoss(2, 0.7, weight, { reduction }),
    (a: Tensor, t: Tensor) => F.multiMarginLoss(a, t, { p: 2, margin: 0.7, weight, reduction }),
    x,
    classes,
  ),
  row(new nn.MultiLabelMarginLoss({ reduction }), (a: Tensor, t: Tensor) => F.multilabelMarginLoss(a, t, { reduction }), x, labels),
  row(
    new nn.MultiLabelSoftMarginLoss({ weight, reduction }),
    (a: Tensor, t: Tensor) => F.multilabelSoftMarginLoss(a, t, { weight, reduction }),
    x,
    y.gt(0).float(),
  ),
  row(
    new nn.TripletMarginLoss({ margin: 0.5, p: 1, eps: 1e-3, swap: true, reduction }),
    (a: Tensor, b: Tensor, c: Tensor) => F.tripletMarginLoss(a, b, c, { margin: 0.5, p: 1, eps: 1e-3, swap: true, reduction }),
    x,
    y,
    z,
  ),
  row(
    new nn.TripletMarginWithDistanceLoss({ distanceFunction: furthest, margin: 0.3, swap: true, reduction }),
    (a: Tensor, b: Tensor, c: Tensor) => F.tripletMarginWithDistanceLoss(a, b, c, { distanceFunction: furthest, margin: 0.3, swap: true, reduction }),
    x,
    y,
    z,
  ),
  row(
    new nn.KLDivLoss({ logTarget: true, reduction }),
    (a: Tensor, t: Tensor) => F.klDiv(a, t, { logTarget: true, reduction }),
    x.logSoftmax(1),
    y.logSoftmax(1),
  ),
  row(
    new nn.PoissonNLLLoss(false, { full: true, eps: 1e-3, reduction }),
    (a: Tensor, t: Tensor) => F.poissonNllLoss(a, t, { logInput: false, full: true, eps: 1e-3, reduction }),
    x.exp(),
    y.exp(),
  ),
  row(
    new nn.GaussianNLLLoss({ full: true, eps: 1e-3, reduction }),
    (a: Tensor, t: Tensor, v: Tensor) => F.gaussianNllLoss(a, t, v, { full: true, eps: 1e-3, reduction }),
    x,
    y,
    z.square(),
  ),
  row(
    new nn.CTCLoss(0, reduction, true),
    (a: Tensor, t: Tensor, i: Tensor, l: Tensor) => F.ctcLoss(a, t, i, l, { reduction, zeroInfinity: true }),
    paths,
    spelled,
    torch.tensor([5, 2]).long(),
    torch.tensor([2, 2]).long(),
  ),
])

const values = (t: Tensor): number[] => Array.from(t.detach().toTypedArray(), Number)

describe.each(rows)('%s', (_, layer, fn, inputs) => {
  const expected = fn(...inputs)

  test(`is its function with reduction '${String(Reflect.get(layer, 'reduction'))}', compiled too`, () => {
    const [eager, compiled] = [lossOf(layer, inputs), lossOf(compile(layer), inputs)]
    expect([eager.shape, compiled.shape]).toEqual([expected.shape, expected.shape])
    expect(values(eager)).toEqual(values(expected))
    values(compiled).forEach((v, i) => expect(v).toBeCloseTo(values(expected)[i] ?? NaN, 5))
  })

  test('is one node of a trace, and gives a gradient', () => {
    class Net extends nn.Module {
      loss = layer
      override forward(a: Tensor, b: Tensor, c: Tensor, d: Tensor): Tensor {
        return lossOf(this.loss, [a, b, c, d].slice(0, inputs.length))
      }
    }
    const traced = fx.symbolicTrace(new Net())
    expect([...traced.graph.nodes].filter(({ op }) => op === 'call_module').map(({ target }) => target)).toEqual(['loss'])
    const [first, ...others] = inputs
    const leaf = (first ?? torch.ones([])).detach().clone().requiresGrad_()
    lossOf(layer, [leaf, ...others])
      .sum()
      .backward()
    expect(values(leaf.grad ?? torch.zeros([1])).some((v) => v !== 0)).toBe(true)
  })
})

test("KLDivLoss divides by the batch for reduction 'batchmean'", () => {
  const inputs = [x.logSoftmax(1), y.softmax(1)] as const
  expect(new nn.KLDivLoss({ reduction: 'batchmean' })(...inputs).item()).toBeCloseTo(new nn.KLDivLoss({ reduction: 'sum' })(...inputs).item() / 3, 6)
})

test('weights are buffers, under the names of PyTorch', () => {
  expect([...new nn.MultiMarginLoss({ weight }).stateDict().keys()]).toEqual(['weight'])
  expect([...new nn.BCEWithLogitsLoss({ weight, posWeight: weight }).stateDict({ names: 'pytorch' }).keys()]).toEqual(['weight', 'pos_weight'])
  expect([...new nn.MultiLabelSoftMarginLoss().stateDict().keys()]).toEqual([])
  expect(new nn.MultiMarginLoss({ weight }).double().weight?.dtype).toBe('float64')
})

test('a distance may be a module, whose parameters are those of the loss', () => {
  class Scaled extends nn.Module {
    scale = new nn.Parameter(torch.tensor([2]))
    override forward(a: Tensor, b: Tensor): Tensor {
      return a.sub(b).abs().sum(-1).mul(this.scale)
    }
  }
  const loss = new nn.TripletMarginWithDistanceLoss({ distanceFunction: new Scaled() })
  expect([...loss.namedParameters()].map(([name]) => name)).toEqual(['distanceFunction.scale'])
  loss(x, y, z).backward()
  expect([...loss.parameters()].map((p) => p.grad !== null)).toEqual([true])
})
