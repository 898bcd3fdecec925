// What a graph page says of a graph is what graphView says, though it is written in fewer bytes.
import { expect, test } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { symbolicTrace } from 'tensorfx/fx'
import { ShapeProp } from 'tensorfx/fx/passes'
import { graphView } from '../../../src/fx/viewer/graphView.ts'
import { pack, unpack } from '../../../src/fx/viewer/pageData.ts'
import type { GraphView } from '../../../src/fx/viewer/view.ts'

class Net extends nn.Module {
  readonly conv = new nn.Conv2d(1, 2, 3)
  readonly bn = new nn.BatchNorm2d(2)
  readonly scale = new nn.Parameter(torch.tensor([0.5, 2]))
  override forward(x: Tensor): Tensor {
    const y = torch.relu(this.bn.call(this.conv.call(x)))
    return torch.sum(y.mean([2, 3]).mul(this.scale), { dim: 1, keepdim: true })
  }
}

/** The view with what unpack gives back of it: four digits of statistics, and inputs and users as numbers. */
function expected({ name, isDiff, nodes, code }: GraphView): unknown {
  const place = (of: string): number => nodes.findIndex((node) => node.name === of)
  const digits = (value: number): number => Number(value.toPrecision(4))
  return {
    name,
    isDiff,
    nodes: nodes.map((node, index) => ({
      ...node,
      index,
      kwargs: Object.entries(node.kwargs),
      inputs: node.inputs.map(place),
      users: nodes.flatMap((other, user) => (other.inputs.includes(node.name) ? [user] : [])),
      tensors: node.tensors.map((tensor) => ({
        ...tensor,
        statistics: tensor.statistics && {
          ...tensor.statistics,
          ...Object.fromEntries((['min', 'max', 'mean', 'std'] as const).map((key) => [key, digits(tensor.statistics?.[key] ?? 0)])),
        },
      })),
    })),
    code: code.map((line) => ({ ...line, node: line.node === null ? -1 : place(line.node) })),
  }
}

test('everything comes back', () => {
  const model = new Net()
  model.eval()
  const gm = symbolicTrace(model)
  torch.noGrad(() => new ShapeProp(gm).propagate(torch.ones([1, 1, 5, 5])))
  const view = graphView(gm, 'net')
  expect(unpack(JSON.parse(JSON.stringify(pack(view))))).toEqual(expected(view))
  expect(view.nodes.find((node) => node.name === 'conv')).toMatchObject({ type: 'Conv2d', config: { kernelSize: '[3, 3]', inChannels: '1' } })
})

test('differences too', () => {
  const before = symbolicTrace((x: Tensor) => x.neg().exp().add(1))
  const after = symbolicTrace((x: Tensor) => x.neg().cos().add(2))
  const view = graphView(after, 'd', before)
  expect(unpack(pack(view))).toEqual(expected(view))
})

test('texts that look like references to nodes are texts', () => {
  const gm = symbolicTrace((x: Tensor) => x.neg())
  const view = graphView(gm, 'g')
  const odd = ['#', '##', '#0;', '#;', '%x', "'%neg #1; x'", 'x', 'neg', 'xs x x1 %x_1', '$&', 'é x']
  const changed: GraphView = {
    ...view,
    nodes: view.nodes.map((node) => ({ ...node, args: odd, kwargs: { '#;': '#', x: '%x' } })),
    code: [...odd.map((text) => ({ text, node: 'neg', change: 'same' as const })), { text: '#; x', node: null, change: 'same' }],
  }
  expect(unpack(pack(changed))).toEqual(expected(changed))
})

test('repeated steps take few bytes each', () => {
  const bytes = (count: number): number =>
    JSON.stringify(
      pack(
        graphView(
          symbolicTrace((x: Tensor) => Array.from({ length: count }).reduce((y: Tensor) => y.neg().exp(), x)),
          'g',
        ),
      ),
    ).length
  expect((bytes(600) - bytes(300)) / 600).toBeLessThan(100)
})
