// splitByTags: components by the tags of nodes; PyTorch's test_fx_split.
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { symbolicTrace } from 'tensorfx/fx'
import type { GraphModule } from 'tensorfx/fx'
import { splitByTags } from 'tensorfx/fx/passes'

class Sub extends nn.Module {
  linear = new nn.Linear(3, 4)
  override forward(x: Tensor): Tensor {
    return this.linear.call(x)
  }
}

class Net extends nn.Module {
  linear1 = new nn.Linear(2, 3)
  linear2 = new nn.Linear(4, 5)
  linear3 = new nn.Linear(6, 7)
  linear4 = new nn.Linear(8, 6)
  override forward(x1: Tensor, x2: Tensor, x3: Tensor): Tensor {
    const v1 = this.linear1.call(x1)
    const v2 = this.linear2.call(x2)
    const v3 = this.linear3.call(x3)
    const v4 = torch.cat([v1, v2, v3], 1)
    return this.linear4.call(v4.narrow(1, 0, 8))
  }
}

function tagged(model: nn.Module, tags: Readonly<Record<string, string>>): GraphModule {
  const gm = symbolicTrace(model)
  for (const node of gm.graph.nodes) {
    const tag = tags[node.name]
    if (tag !== undefined) node.meta['tag'] = tag
  }
  return gm
}

const inputs = (): Tensor[] => [torch.randn([1, 2]), torch.randn([1, 4]), torch.randn([1, 6])]
const tags = { linear1: 'red', linear2: 'blue', linear3: 'green', cat: 'blue', narrow: 'red', linear4: 'red' }

describe('splitByTags', () => {
  const gm = tagged(new Net(), { linear1: 'red_0', linear2: 'blue_0', linear3: 'green_0', cat: 'red_1', narrow: 'red_1', linear4: 'red_1' })
  const names = ['red_0', 'blue_0', 'green_0', 'red_1']

  it('test_split_by_tags: a submodule for each tag, in order, and where the attributes went', () => {
    const { graphModule, qualnames } = splitByTags(gm, names)
    graphModule.graph.lint()
    expect([...graphModule.namedChildren()].map(([name]) => name)).toEqual(names)
    for (const [name, child] of graphModule.namedChildren())
      for (const node of (child as GraphModule).graph.nodes) if (node.op.startsWith('call')) expect(node.meta['tag']).toBe(name)
    expect(Object.fromEntries(qualnames)).toEqual({
      linear1: 'red_0.linear1',
      linear2: 'blue_0.linear2',
      linear3: 'green_0.linear3',
      linear4: 'red_1.linear4',
    })
    const given = inputs()
    expect(torch.allclose(graphModule.call(...given), gm.call(...given))).toBe(true)
    expect(graphModule.code).toBe(`function forward(x1, x2, x3) {
  let red_0 = this.red_0.call(x1); x1 = null
  let blue_0 = this.blue_0.call(x2); x2 = null
  let green_0 = this.green_0.call(x3); x3 = null
  const red_1 = this.red_1.call(red_0, blue_0, green_0); red_0 = blue_0 = green_0 = null
  return red_1
}`)
  })

  it('test_split_by_tags, output type: with returnTuple every component returns a tuple', () => {
    const single = splitByTags(gm, names).graphModule
    const tuples = splitByTags(gm, names, { returnTuple: true }).graphModule
    const given = inputs()
    for (const [name, child] of tuples.namedChildren()) {
      expect(Array.isArray((child as GraphModule).graph.outputNode().args[0])).toBe(true)
      expect(Array.isArray((single.attribute(name) as GraphModule).graph.outputNode().args[0])).toBe(false)
    }
    expect(torch.allclose(tuples.call(...given), single.call(...given))).toBe(true)
  })

  it('every component reads attributes for itself; nested modules keep their path', () => {
    class Shared extends nn.Module {
      sub = new Sub()
      w = new nn.Parameter(torch.ones([3]))
      override forward(x: Tensor): Tensor[] {
        const a = x.mul(this.w)
        return [this.sub.call(a), a.add(this.w), this.w]
      }
    }
    const model = new Shared()
    const shared = tagged(model, { mul: 'first', sub_linear: 'second', add: 'second' })
    const { graphModule, qualnames } = splitByTags(shared, ['first', 'second'])
    expect([...qualnames.values()]).toEqual(['second.w', 'second.sub.linear'])
    const x = torch.randn([2, 3])
    const want = model.call(x)
    ;(graphModule.call(x) as Tensor[]).forEach((value, i) => expect(torch.allclose(value, want[i] as Tensor)).toBe(true))
  })

  it('an order that the values do not allow, and nodes without a known tag, are errors', () => {
    expect(() => splitByTags(tagged(new Net(), tags), ['red', 'blue', 'green'])).toThrow(
      "node 'cat' of 'blue' needs a value of 'green', which comes later in tags",
    )
    expect(() => splitByTags(symbolicTrace(new Net()), ['red'])).toThrow("node 'linear1' has no tag; set node.meta.tag of every operation.")
    expect(() => splitByTags(tagged(new Net(), tags), ['red'])).toThrow("node 'linear2' has the tag 'blue', which is not in tags (red)")
    expect(() => splitByTags(gm, ['a', 'a'])).toThrow('tags must be an array of different names')
  })
})
