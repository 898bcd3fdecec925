// Rewrites of graphs: each named one fires where its pattern is, and not where its condition does not hold.
import { describe, expect, it } from 'vitest'
import { fx, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { batchNormRewrite, dropoutRewrite } from 'tensorfx/fx/experimental'
import { applyRewrites, nodeRewrite, patternRewrite, rewritePass, runPasses } from 'tensorfx/fx/passes'
import type { GraphRewrite } from 'tensorfx/fx/passes'

const silu = (condition?: Parameters<typeof patternRewrite>[0]['condition']): GraphRewrite =>
  patternRewrite({
    name: 'silu',
    what: 'x * sigmoid(x) becomes silu(x)',
    pattern: (x: Tensor) => x.mul(x.sigmoid()),
    replacement: (x: Tensor) => nn.functional.silu(x),
    ...(condition === undefined ? {} : { condition }),
  })

class Net extends nn.Module {
  conv = new nn.Conv2d(2, 3, 1)
  norm = new nn.BatchNorm2d(3)
  drop = new nn.Dropout(0.5)
  override forward(x: Tensor): Tensor {
    return this.drop.call(this.norm.call(this.conv.call(x)))
  }
}

class TwiceUsed extends Net {
  override forward(x: Tensor): Tensor {
    const y = this.conv.call(x)
    return this.norm.call(y).add(y)
  }
}

const image = torch.arange(2 * 2 * 3 * 3, { dtype: 'float32' }).reshape([2, 2, 3, 3])

describe('a list of rewrites', () => {
  it('is applied in order, says what each did, and leaves what the program computes', () => {
    const model = new Net().eval()
    for (const [i, buffer] of [model.norm.runningMean, model.norm.runningVar].entries()) buffer?.add_(i + 0.5)
    const gm = fx.symbolicTrace(model)
    const before = gm.call(image)
    expect(applyRewrites(gm, [silu(), batchNormRewrite, dropoutRewrite])).toEqual([
      { name: batchNormRewrite.name, nodes: ['norm'] },
      { name: dropoutRewrite.name, nodes: ['drop'] },
    ])
    expect([...gm.graph.nodes].map((node) => node.name)).toEqual(['x', 'conv', 'output'])
    expect(torch.allclose(gm.call(image), before, { atol: 1e-5 })).toBe(true)
    expect([...gm.namedModules()].map(([path]) => path)).toEqual(['', 'conv'])
  })

  it('changes nothing where no pattern matches', () => {
    const gm = fx.symbolicTrace((x: Tensor) => x.add(1))
    const { code } = gm
    expect(applyRewrites(gm, [silu(), batchNormRewrite, dropoutRewrite])).toEqual([])
    expect(gm.code).toBe(code)
    expect(rewritePass('all', [silu()]).run(gm)).toBe(false)
  })

  it('is a pass', () => {
    const gm = fx.symbolicTrace((x: Tensor) => x.mul(x.sigmoid()))
    expect(runPasses([rewritePass('simplify', [silu()])], gm).runs).toMatchObject([{ name: 'simplify', changed: true }])
    expect(gm.code).toContain('silu')
  })

  it('refuses what is no rewrite', () => {
    const gm = fx.symbolicTrace((x: Tensor) => x)
    // @ts-expect-error a function is no rewrite
    expect(() => applyRewrites(gm, [(x: Tensor) => x])).toThrow("applyRewrites: argument 'rewrites[0]' must be a rewrite")
    // @ts-expect-error a condition is a function
    expect(() => silu(3)).toThrow('condition')
  })
})

describe('a condition', () => {
  it('of a pattern keeps an occurrence', () => {
    const gm = fx.symbolicTrace((x: Tensor) => x.mul(x.sigmoid()).add(x.neg().mul(x.neg().sigmoid())))
    const inner = (x: Tensor): Tensor => x.mul(x.sigmoid())
    const two = fx.symbolicTrace((x: Tensor) => inner(inner(x)))
    expect(applyRewrites(gm, [silu()])).toHaveLength(1)
    expect(applyRewrites(two, [silu((match) => match.placeholderNodes[0] === [...two.graph.nodes][0])])).toEqual([{ name: 'silu', nodes: ['mul'] }])
    expect([...two.graph.nodes].map((node) => node.name)).toEqual(['x', 'silu', 'sigmoid_1', 'mul_1', 'output'])
  })

  it('of the batch norm: the result has no other user, the norm has statistics and is not in training', () => {
    const names = (model: nn.Module): readonly string[] => applyRewrites(fx.symbolicTrace(model), [batchNormRewrite]).map(({ name }) => name)
    expect(names(new Net().eval())).toEqual([batchNormRewrite.name])
    expect(names(new Net())).toEqual([])
    expect(names(new TwiceUsed().eval())).toEqual([])
    const plain = new Net().eval()
    plain.norm = new nn.BatchNorm2d(3, { trackRunningStats: false }).eval()
    expect(names(plain)).toEqual([])
    // What a linear layer gives is normalized along another dimension, unless it is known to be a matrix.
    expect(names(new nn.Sequential(new nn.Linear(2, 3), new nn.BatchNorm1d(3)).eval())).toEqual([])
  })
})

describe('a rewrite of nodes', () => {
  const isNeg = (value: unknown): value is fx.Node => value instanceof fx.Node && value.op === 'call_method' && value.target === 'neg'
  const doubleNegation = (condition?: () => boolean): GraphRewrite =>
    nodeRewrite({
      name: 'double negation',
      what: '-(-x) becomes x',
      match: ({ node }) => (isNeg(node) && isNeg(node.args[0]) ? node.args[0].args[0] : null),
      ...(condition === undefined ? {} : { condition }),
      replace: (inner) => inner as fx.Node,
    })

  it('replaces a node with another, and honours its condition', () => {
    const trace = (): fx.GraphModule => fx.symbolicTrace((x: Tensor) => x.neg().neg().add(1))
    expect(applyRewrites(trace(), [doubleNegation(() => false)])).toEqual([])
    const gm = trace()
    expect(applyRewrites(gm, [doubleNegation()])).toEqual([{ name: 'double negation', nodes: ['neg_1'] }])
    expect(gm.call(torch.tensor([1, 2])).toArray()).toEqual([2, 3])
  })

  it('must give a node', () => {
    const gm = fx.symbolicTrace((x: Tensor) => x.neg().neg())
    const wrong = nodeRewrite({
      name: 'wrong',
      what: 'wrong',
      match: ({ node }) => (isNeg(node) ? node : null),
      replace: () => 3 as unknown as fx.Node,
    })
    expect(() => applyRewrites(gm, [wrong])).toThrow("rewrite 'wrong': replace must return a node, for node 'neg'")
  })
})
