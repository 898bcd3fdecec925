// PyTorch's fx/test_z3_gradual_types.py: whole programs as constraints. Every test runs with Z3 and with the search that stands in for it.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Slice, operator, tuple } from 'tensorfx/fx'
import type { GraphModule, NodeType, TargetFunction } from 'tensorfx/fx'
import { TensorType, setInputTypes } from 'tensorfx/fx/experimental'
import { And, Const, D, Int, Or, compare, sameInt, sameTensor, tensor, transformAllConstraints } from 'tensorfx/fx/experimental/migrateGradualTypes'
import * as m from 'tensorfx/fx/experimental/migrateGradualTypes'
import { AdaptiveAvgPool2d, Conv2d, Dropout, Embedding, LayerNorm, Linear, MaxPool2d, Module, ReLU, Sequential, functional as F } from 'tensorfx/nn'
import { ConvPoolFlatten, Chained, Dyn, ResNet50, TT, typed } from './modules/gradual.ts'

const shape = (...sizes: readonly number[]): m.TensorTermZ3 => tensor(...sizes.map((size) => D(1, size)))
/** Sizes that are variables: `x11, x1`, `x22, x2`, … */
const variables = (name: string, count: number): m.DimTerm[] => Array.from({ length: count }, (_, i) => D(Int(`${name}f${i}`), Int(`${name}${i}`)))
const full = new Slice(null, null)
type WithTypeAs = Tensor & { typeAs(other: Tensor): Tensor }
type Program = Module | ((...inputs: never[]) => unknown)
const graph = (program: Program, ...types: readonly NodeType[]): GraphModule => typed(program as TargetFunction, ...types)
const retype = (gm: GraphModule, ...types: readonly NodeType[]): GraphModule => {
  const names = gm.graph.findNodes({ op: 'placeholder' }).map((node) => node.target)
  setInputTypes(gm, Object.fromEntries(types.map((type, i) => [names[i] ?? '', type])))
  return gm
}
const nodeNamed = (gm: GraphModule, name: string): GraphModule['graph']['nodes'] extends Iterable<infer N> ? N : never => {
  const found = [...gm.graph.nodes].find((node) => node.name === name)
  if (found === undefined) throw new Error(`no node ${name} in ${String(gm.graph)}`)
  return found
}

describe.each(['z3', 'search'] as const)('with %s', (solver) => {
  /** Z3 takes ten seconds and more for a test with products of sizes, and for a ResNet. */
  const quick = solver === 'search'
  const check = (formula: m.Formula, ...more: readonly m.Formula[]): Promise<m.SolverResult> => m.solve(And(formula, ...more), { solver })
  const status = async (gm: GraphModule, ...more: readonly m.Formula[]): Promise<string> => (await check(transformAllConstraints(gm), ...more)).status
  const modelOf = async (formula: m.Formula, ...more: readonly m.Formula[]): Promise<m.Model> => {
    const { model, status: answer } = await check(formula, ...more)
    if (model === null) throw new Error(`expected values, got ${answer}`)
    return model
  }
  /** The type of a node's value, as a variable. */
  const typeOf = (gm: GraphModule, name: string): m.TensorTermZ3 => {
    const generator = new m.ConstraintGenerator(gm)
    generator.generateConstraints()
    const symbol = generator.symbolDict.get(nodeNamed(gm, name))
    if (!(symbol instanceof m.TVar)) throw new Error(`no type for ${name}`)
    return Const(symbol.tvar)
  }
  /** The type of a node's value in the values that were found. Only for formulas that admit one: which of several a solver finds is its own choice. */
  const typeIn = async (gm: GraphModule, name: string, ...more: readonly m.Formula[]): Promise<string> =>
    String((await modelOf(transformAllConstraints(gm), ...more)).type(typeOf(gm, name)))
  /** Whether a node's value may have this shape. */
  const holds = (gm: GraphModule, name: string, ...sizes: readonly number[]): Promise<string> =>
    status(gm, sameTensor(typeOf(gm, name), shape(...sizes)))
  const decide = async (gm: GraphModule, name: string): Promise<string> => {
    const result = await m.evaluateConditionalWithConstraints(gm, gm.graph, nodeNamed(gm, name), 0, { solver })
    expect(result.solver).toBe(solver)
    return `${result.condition} ${result.negation}`
  }
  const input = Const(1)

  it('questions that are asked at once have all their answers', async () => {
    const one = (i: number): m.Formula => And(sameTensor(Const('t'), shape(i, 2)), sameInt(Int('n'), i))
    const models = await Promise.all(Array.from({ length: 20 }, (_, i) => modelOf(one(i))))
    expect(models.map((model) => `${String(model.type(Const('t')))} ${model.int(Int('n'))}`)).toEqual(
      Array.from({ length: 20 }, (_, i) => `TensorType[(${i}, 2)] ${i}`),
    )
  })

  describe('flow of control', () => {
    it('test_dim: the rank of a tensor of known rank', async () => {
      expect(
        await decide(
          graph((x: Tensor) => operator.eq(x.dim(), 3), TensorType([1, Dyn, 3])),
          'eq',
        ),
      ).toBe('sat unsat')
    })

    it('test_eq_dim: a rank that is not the one compared with', async () => {
      expect(
        await decide(
          graph((x: Tensor) => operator.eq(x.dim(), -1), TensorType([32, 4, 4])),
          'eq',
        ),
      ).toBe('unsat sat')
    })

    it('test_conditional_ne_1: a shape that is the one compared with', async () => {
      const gm = graph((x: Tensor) => operator.ne(x.size(), [32, 4, 4]), TensorType([32, 4, 4]))
      expect(await decide(gm, 'ne')).toBe('unsat sat')
      // Its negation is not decided, as in PyTorch: the shape differs from some shape.
      expect(await decide(retype(gm, TensorType([32, 4, 5])), 'ne')).toBe('sat sat')
    })

    class Views extends Module {
      embedTokens: Embedding = new Embedding(100, 8)

      override forward(x: Tensor): unknown {
        const size = x.size()
        const view = x.view([-1, operator.getitem(size, -1) as number])
        const embedded = operator.mul(this.embedTokens.call(view), 32)
        return [embedded, operator.gt(operator.getitem(size, -1), 1), operator.lt(operator.getitem(size, -1), 1)]
      }
    }

    it('test_conditional: a size is decided if it is known', async () => {
      const gm = graph(new Views(), TensorType([Dyn, 4]))
      expect(await decide(gm, 'gt')).toBe('sat unsat')
      expect(await decide(retype(gm, Dyn), 'gt')).toBe('sat sat')
      expect(await decide(retype(gm, TensorType([Dyn, Dyn])), 'gt')).toBe('sat sat')
    })

    it('test_conditional_2: the opposite', async () => {
      expect(await decide(graph(new Views(), TensorType([Dyn, 4])), 'lt')).toBe('unsat sat')
    })

    it('test_conditional_wrong_assumption: a value that is a number after all', async () => {
      const gm = graph((x: Tensor) => operator.gt(x, 1), Dyn)
      expect(await decide(gm, 'gt')).toBe('sat sat')
    })
  })

  describe('operators', () => {
    it('test_reshape: the type after a reshape is forced', async () => {
      const gm = graph((x: Tensor) => torch.reshape(x, [100]), TensorType([10, 10]))
      expect(await typeIn(gm, 'reshape')).toBe('TensorType[(100,)]')
      expect(await status(gm, m.Not(sameTensor(Const(2), shape(100))))).toBe('unsat')
    })

    const bmm = (x: Tensor, y: Tensor): Tensor => torch.bmm(x, y)

    it('test_bmm: batches and outer sizes', async () => {
      expect(await typeIn(graph(bmm, TensorType([Dyn, 2, 3]), TensorType([1, 3, 2])), 'bmm')).toBe('TensorType[(1, 2, 2)]')
    })

    it('test_bmm2: the other operand may be unknown', async () => {
      const gm = graph(bmm, Dyn, TensorType([1, 3, 2]))
      expect(await typeIn(gm, 'bmm', sameTensor(input, shape(1, 5, 3)))).toBe('TensorType[(1, 5, 2)]')
    })

    it('test_bmm3: matrices of rank 2', async () => {
      expect(await status(graph(bmm, TensorType([2, 3]), TensorType([1, 3, 2])))).toBe('unsat')
    })

    it('test_transpose: sizes change places', async () => {
      const gm = graph((x: Tensor) => x.transpose(0, 1), TensorType([1, 2, 3, 4]))
      expect(await typeIn(gm, 'transpose')).toBe('TensorType[(2, 1, 3, 4)]')
      expect(await status(retype(gm, Dyn))).toBe('sat')
    })

    it('test_index_select: one size is that of the index', async () => {
      const gm = graph((x: Tensor, y: Tensor) => x.indexSelect(0, y), TensorType([2050, 1024]), TensorType([5]))
      expect(await typeIn(gm, 'index_select')).toBe('TensorType[(5, 1024)]')
      expect(await status(retype(gm, TensorType([2050, 1024]), TensorType([5, 5])))).toBe('unsat')
    })

    it('test_get_attr: the device of a tensor', async () => {
      const gm = graph((x: Tensor) => x.to((x as unknown as { device: string }).device as never), TensorType([1, 2, 3]))
      expect(await status(gm)).toBe('sat')
      expect(await typeIn(gm, 'to')).toBe('TensorType[(1, 2, 3)]')
    })

    it('test_expand: sizes of 1 grow', async () => {
      const gm = graph((x: Tensor) => x.expand([4, 2, 3]), TensorType([1, 2, 1]))
      expect(await typeIn(gm, 'expand')).toBe('TensorType[(4, 2, 3)]')
      expect(await status(retype(gm, TensorType([3, 2, 1])))).toBe('unsat')
    })

    it('test_getitem_tensor: new dimensions in front', async () => {
      const gm = graph((x: Tensor) => operator.getitem(x, tuple(null, null, full, full)), TensorType([4, 4]))
      expect(await typeIn(gm, 'getitem')).toBe('TensorType[(1, 1, 4, 4)]')
    })

    it('test_getitem_tensor2: new dimensions at the end', async () => {
      const gm = graph((x: Tensor) => operator.getitem(x, tuple(full, full, null, null)), TensorType([4, 5]))
      expect(await typeIn(gm, 'getitem')).toBe('TensorType[(4, 5, 1, 1)]')
    })

    it('test_getitem_tensor_3: new dimensions between', async () => {
      const gm = graph((x: Tensor) => operator.getitem(x, tuple(full, null, null, full)), TensorType([4, 5]))
      expect(await typeIn(gm, 'getitem')).toBe('TensorType[(4, 1, 1, 5)]')
    })

    it('test_layer_norm: the last size must be the normalized one', async () => {
      const gm = graph(new Chained({ l: new LayerNorm([1024]) }), Dyn)
      expect(await status(gm)).toBe('sat')
      const model = await modelOf(transformAllConstraints(gm), sameTensor(Const(2), shape(1024)))
      expect(String(model.type(input))).toBe('TensorType[(1024,)]')
      expect(await status(retype(gm, TensorType([10, 10])))).toBe('unsat')
      expect(await typeIn(retype(gm, TensorType([10, 1024])), 'l')).toBe('TensorType[(10, 1024)]')
    })

    it('test_layer_norm_functional: as the layer', async () => {
      const gm = graph((x: Tensor) => F.layerNorm(x, [1024]), TensorType([10, 1024]))
      expect(await typeIn(gm, 'layer_norm')).toBe('TensorType[(10, 1024)]')
      expect(await status(retype(gm, TensorType([10, 1023])))).toBe('unsat')
    })

    it('test_ne_int_long_type_as: operations that keep the shape', async () => {
      const gm = graph((x: Tensor, y: Tensor) => (torch.ne(x, y).int() as WithTypeAs).typeAs(y).long(), TensorType([Dyn, Dyn]), TensorType([2, 3]))
      expect(await typeIn(gm, 'long')).toBe('TensorType[(2, 3)]')
    })

    it('test_ne: broadcasting', async () => {
      const gm = graph((x: Tensor, y: Tensor) => torch.ne(x, y), Dyn, Dyn)
      expect(await status(gm)).toBe('sat')
      retype(gm, TensorType([1, 2]), TensorType([2, Dyn]))
      const unknown = sameTensor(Const(2), tensor(D(Int('f'), Int('s')), D(0, Int('t'))))
      expect(await typeIn(gm, 'ne', unknown)).toBe('TensorType[(2, 2)]')
    })

    const cumsum = (x: Tensor): Tensor => torch.cumsum(x, 3)

    it('test_cumsum: the dimension must be there', async () => {
      const gm = graph(cumsum, TensorType([Dyn, 4, 3]))
      expect(await status(gm)).toBe('unsat')
      expect(await status(retype(gm, Dyn))).toBe('sat')
      expect(await typeIn(retype(gm, TensorType([1, 2, 3, 4])), 'cumsum')).toBe('TensorType[(1, 2, 3, 4)]')
      expect(await status(graph((x: Tensor) => torch.cumsum(x, -1), TensorType([2, 3])))).toBe('sat')
    })

    it('test_cumsum_kwargs: the dimension by name', async () => {
      const gm = graph(cumsum, TensorType([Dyn, 4, 3]))
      const node = nodeNamed(gm, 'cumsum')
      node.args = node.args.slice(0, 1)
      node.kwargs = { dim: 3 }
      expect(await status(gm)).toBe('unsat')
      expect(await status(retype(gm, Dyn))).toBe('sat')
    })

    const lastSize = (x: Tensor): Tensor => torch.arange(operator.getitem(x.size(), -1) as number)

    it('test_arange: as many elements as a size says', async () => {
      const gm = graph(lastSize, TensorType([2, 4]))
      expect(await typeIn(gm, 'arange')).toBe('TensorType[(4,)]')
      expect(await status(retype(gm, Dyn))).toBe('sat')
      expect(await status(retype(gm, TensorType([Dyn, Dyn, Dyn, Dyn])))).toBe('sat')
    })

    it('test_scalar_add: a number changes no shape', async () => {
      expect(
        await typeIn(
          graph((x: Tensor) => operator.add(lastSize(x), 1), TensorType([2, 4])),
          'add',
        ),
      ).toBe('TensorType[(4,)]')
    })

    it('test_regular_add_2: sizes plus numbers', async () => {
      const gm = graph((x: Tensor) => torch.arange(operator.add(x.size(0), 5) as number), TensorType([2, 4]))
      expect([await holds(gm, 'arange', 7), await holds(gm, 'arange', 8)]).toEqual(['sat', 'unsat'])
    })

    it('test_regular_add_3: numbers plus sizes', async () => {
      const gm = graph((x: Tensor) => torch.arange(operator.add(1, x.size(1))), TensorType([2, 4]))
      expect([await holds(gm, 'arange', 5), await holds(gm, 'arange', 6)]).toEqual(['sat', 'unsat'])
    })

    it('test_embedding: one more size', async () => {
      const gm = graph(new Chained({ embedding: new Embedding(50, 1024) }), TensorType([2, 4]))
      expect(await typeIn(gm, 'embedding')).toBe('TensorType[(2, 4, 1024)]')
      retype(gm, TensorType([Dyn, Dyn]))
      expect(await status(gm)).toBe('sat')
      const features = (size: number): m.Formula => sameTensor(Const(2), tensor(...variables('v', 2), D(1, size)))
      expect([await status(gm, features(1024)), await status(gm, features(1023))]).toEqual(['sat', 'unsat'])
      expect(await status(retype(gm, Dyn))).toBe('sat')
    })

    it('test_embedding_2: weights as an argument', async () => {
      const gm = graph((x: Tensor, w: Tensor) => F.embedding(x, w), TensorType([2, 4]), TensorType([100, 24]))
      expect(await typeIn(gm, 'embedding')).toBe('TensorType[(2, 4, 24)]')
    })

    it('test_size_two_args: a size by a negative index', async () => {
      const gm = graph((x: Tensor) => x.size(-1), TensorType([Dyn, 2, Dyn]))
      const model = await modelOf(
        transformAllConstraints(gm),
        sameTensor(input, tensor(...variables('d', 3))),
        sameInt(Int('df2'), 1),
        sameInt(Int('d2'), 7),
      )
      expect(model.int(Int(2))).toBe(7)
    })

    it('test_size_getitem: the last size, and an index that is not there', async () => {
      const last = (index: number): GraphModule => graph((x: Tensor) => operator.getitem(x.size(), index), Dyn)
      const model = await modelOf(transformAllConstraints(last(-1)), sameTensor(input, shape(3, 4, 5, 6)))
      expect(model.int(Int(3))).toBe(6)
      expect(await status(last(-10), m.Not(sameTensor(input, m.z3Dyn)))).toBe('unsat')
    })

    class ViewMul extends Module {
      embedTokens: Embedding = new Embedding(100, 1024)

      override forward(x: Tensor): unknown {
        return operator.mul(this.embedTokens.call(x.view([-1, operator.getitem(x.size(), -1) as number])), 32)
      }
    }

    it('test_view_mul: a view with a size of the input', async () => {
      const gm = graph(new ViewMul(), TensorType([2, 4]))
      expect(await typeIn(gm, 'mul')).toMatch(/^TensorType\[\(\d+, 4, 1024\)\]$/)
    })

    it('test_gt: a condition that holds', async () => {
      expect(
        await decide(
          graph((x: Tensor) => operator.gt(operator.getitem(x.size(), -1), 1), TensorType([Dyn, 4])),
          'gt',
        ),
      ).toBe('sat unsat')
    })

    it('test_view: a size that follows from the others', async () => {
      expect(await status(graph((x: Tensor) => x.view([-1, 8]), TensorType([2, 4])))).toBe('sat')
      expect(await status(graph((x: Tensor) => x.view([-1, 3]), TensorType([2, 4])))).toBe('unsat')
    })

    it('test_lt_tensor: broadcasting', async () => {
      const gm = graph((x: Tensor, y: Tensor) => operator.lt(x, y), TensorType([2, 1]), TensorType([3]))
      expect(await typeIn(gm, 'lt')).toBe('TensorType[(2, 3)]')
    })
  })

  describe('compositions', () => {
    it('test_masked_fill: the mask is broadcast', async () => {
      const gm = graph(
        (x: Tensor & { maskedFill_(mask: Tensor, value: number): Tensor }, mask: Tensor) => x.maskedFill_(mask, 1),
        TensorType([2, 4]),
        TensorType([4]),
      )
      expect(await typeIn(gm, 'masked_fill_')).toBe('TensorType[(2, 4)]')
    })

    const addReshape = (a: number[], b: number[]): GraphModule =>
      graph((x: Tensor, y: Tensor) => torch.add(torch.reshape(x, a), torch.reshape(y, b)), Dyn, Dyn)

    it('test_add_reshape_1: shapes that fit', async () => expect(await status(addReshape([1, 2], [2, 2]))).toBe('sat'))
    it('test_add_reshape_2: an unknown size and another rank', async () => expect(await status(addReshape([-1, 2], [2, 2, 2]))).toBe('sat'))
    it('test_add_reshape: the number of constraints', () => {
      expect(new m.ConstraintGenerator(addReshape([1, 2], [2, 2])).generateConstraints(0)[0].conjuncts).toHaveLength(11)
    })

    class ConvAdd extends Module {
      conv1: Conv2d = new Conv2d(2, 2, 2, { stride: 3, padding: 2, groups: 2, bias: false, dilation: 2 })

      override forward(x: Tensor, y: Tensor): Tensor {
        return torch.add(this.conv1.call(torch.reshape(x, [1, 2, 10, 20])), y)
      }
    }
    const convAdd = (type: NodeType): GraphModule => graph(new ConvAdd(), Dyn, type)

    if (quick) it('test_conv_reshape_add_0: anything may be added', async () => expect(await status(convAdd(Dyn))).toBe('sat'))
    if (quick)
      it('test_conv_reshape_add_0_2: sizes of the result are those of a run', async () => {
        const real = new ConvAdd().call(torch.zeros([20, 20]), torch.zeros([4, 1])) as Tensor
        expect(await typeIn(convAdd(TensorType([4, 1])), 'add')).toBe(String(TT(...real.shape)))
        expect(await typeIn(convAdd(TensorType([4, 1])), 'conv1')).toBe('TensorType[(1, 2, 4, 8)]')
      })
    if (quick)
      it('test_conv_reshape_add_0_3: a size that cannot be broadcast', async () => expect(await status(convAdd(TensorType([11, 1])))).toBe('unsat'))
    if (quick)
      it('test_conv_reshape_add_1: the shape before the convolution', async () =>
        expect(await status(convAdd(TensorType([1, 2, 10, 20])))).toBe('unsat'))
    it('test_conv_reshape_add: the number of constraints', () => {
      expect(new m.ConstraintGenerator(convAdd(Dyn)).generateConstraints(0)[0].conjuncts).toHaveLength(16)
    })

    class ConvReshape extends Module {
      conv1: Conv2d = new ConvAdd().conv1
      target: number[]

      constructor(...target: number[]) {
        super()
        this.target = target
      }

      override forward(x: Tensor): Tensor {
        return this.conv1.call(torch.reshape(x, this.target))
      }
    }

    if (quick)
      it('test_conv_reshape_unsat: a convolution of rank 3', async () => expect(await status(graph(new ConvReshape(1, 2, 10), Dyn))).toBe('unsat'))
    if (quick)
      it('test_conv_reshape0: sizes of the result are those of a run', async () => {
        const real = new ConvReshape(1, 2, 10, 20).call(torch.zeros([20, 20])) as Tensor
        expect(await typeIn(graph(new ConvReshape(1, 2, 10, 20), Dyn), 'conv1')).toBe(String(TT(...real.shape)))
      })
    if (quick)
      it('test_conv_reshape1: with a size that follows from the others', async () => {
        expect(await typeIn(graph(new ConvReshape(1, -1, 10, 20), TensorType([20, 20])), 'conv1')).toBe('TensorType[(1, 2, 4, 8)]')
      })
  })

  describe('single operations', () => {
    const add = (x: Tensor, y: Tensor): Tensor => torch.add(x, y)
    const sum = (x: NodeType, y: NodeType): GraphModule => graph(add, x, y)
    const other = Const(2)

    it('test_conv_wrong_example: a wrong size after the convolution', async () => {
      const gm = graph(new Chained({ conv1: new Conv2d(2, 2, 2, { stride: 2, padding: 2, dilation: 2 }) }), TensorType([5, 2, 7, 8]))
      expect(await status(gm)).toBe('sat')
      expect(await status(gm, sameTensor(Const(2), shape(5, 2, 7, 8)))).toBe('unsat')
    })

    it('test_conv_dyn: batches are equal, channels fit or are unknown', async () => {
      const gm = graph(new Chained({ conv1: new Conv2d(2, 2, 2, { stride: 2, padding: 2, groups: 2, dilation: 2 }) }), Dyn)
      const [x, y] = [variables('s', 4), variables('e', 4)]
      const shapes = [sameTensor(input, tensor(...x)), sameTensor(other, tensor(...y))]
      const model = await modelOf(transformAllConstraints(gm), ...shapes)
      expect([model.int(Int('s0')), model.int(Int('sf0'))]).toEqual([model.int(Int('e0')), model.int(Int('ef0'))])
      const wrong = [...shapes, compare(Int('s1'), '!=', 2)]
      expect((await modelOf(transformAllConstraints(gm), ...wrong)).int(Int('sf1'))).toBe(0)
      expect(await status(gm, ...wrong, compare(Int('sf1'), '!=', 0))).toBe('unsat')
      expect(await status(gm, sameTensor(input, tensor(...x.slice(0, 3))))).toBe('unsat')
    })

    it('test_add: known and unknown operands', async () => {
      const sized = (term: m.TensorTermZ3, name: string): m.Formula => sameTensor(term, tensor(D(1, Int(name))))
      const [a, b] = [sized(input, 'a'), sized(other, 'b')]
      expect(await status(sum(Dyn, Dyn), a, b, sameInt(Int('a'), 1), sameInt(Int('b'), 2))).toBe('sat')
      expect(await status(sum(TensorType([Dyn]), Dyn), a, b, sameInt(Int('a'), 4), sameInt(Int('b'), 5))).toBe('unsat')
      expect(await status(sum(TensorType([Dyn]), Dyn), sameTensor(input, tensor(...variables('s', 2))))).toBe('unsat')
    })

    it('test_add_padding: another rank', async () => {
      expect(await status(sum(TensorType([Dyn]), TensorType([Dyn, Dyn])), sameTensor(input, tensor(D(1, Int('s')))))).toBe('sat')
    })

    it('test_add_padding_2: the result has the higher rank, and a size that is not broadcast is known', async () => {
      const gm = sum(TensorType([Dyn, Dyn]), TensorType([Dyn]))
      const shapes = [sameTensor(input, tensor(D(1, Int('a')), D(1, Int('b')))), sameTensor(other, tensor(D(0, Int('c'))))]
      const result = typeOf(gm, 'add')
      const ofRank2 = sameTensor(result, tensor(...variables('r', 2)))
      const others = [m.z3Dyn, ...[1, 3, 4].map((rank) => tensor(...variables(`o${rank}`, rank)))].map((type) => sameTensor(result, type))
      expect(await status(gm, ...shapes, ofRank2)).toBe('sat')
      expect(await status(gm, ...shapes, Or(...others))).toBe('unsat')
      const notBroadcast = [...shapes, compare(1, '<', Int('b')), ofRank2]
      expect(await status(gm, ...notBroadcast, compare(Int('rf1'), '!=', 0))).toBe('sat')
      expect(await status(gm, ...notBroadcast, sameInt(Int('rf1'), 0))).toBe('unsat')
    })

    it('test_add_padding_3: a size of 1 takes one that is unknown', async () => {
      const gm = sum(TensorType([Dyn, 1]), TensorType([Dyn]))
      const shapes = [sameTensor(input, tensor(D(0, Int('a')), D(1, 1))), sameTensor(other, tensor(D(0, Int('c'))))]
      expect(await typeIn(gm, 'add', ...shapes)).toBe('TensorType[(Dyn, Dyn)]')
    })

    it('test_add_padding_4: known sizes', async () =>
      expect(await typeIn(sum(TensorType([2, 1]), TensorType([3])), 'add')).toBe('TensorType[(2, 3)]'))
    it('test_add_padding_5: sizes that do not fit', async () => expect(await status(sum(TensorType([2, 2]), TensorType([3])))).toBe('unsat'))

    it('test_add_size_3: rank 3', async () => {
      const gm = sum(TensorType([Dyn, Dyn, Dyn]), TensorType([Dyn, Dyn, Dyn]))
      const known = (name: string, middle: m.IntTerm | number): m.TensorTermZ3 => tensor(D(1, Int(`${name}0`)), D(1, middle), D(1, Int(`${name}2`)))
      const shapes = [sameTensor(input, known('a', 1)), sameTensor(other, known('b', Int('b1'))), sameInt(Int('a2'), 5)]
      expect(await status(gm, ...shapes)).toBe('sat')
      expect(await status(gm, ...shapes, sameInt(Int('b2'), 6))).toBe('unsat')
    })

    it('test_add_padding_6: rank 1 and 3', async () => {
      const gm = sum(TensorType([Dyn]), TensorType([Dyn, Dyn, Dyn]))
      const shapes = [sameTensor(input, tensor(D(1, Int('a')))), sameTensor(other, tensor(D(1, Int('b')), D(1, Int('c')), D(1, Int('d'))))]
      expect(await status(gm, ...shapes)).toBe('sat')
      expect(await status(gm, ...shapes, sameInt(Int('a'), 4), sameInt(Int('d'), 5))).toBe('unsat')
    })

    const four = TensorType([Dyn, Dyn, Dyn, Dyn])
    it('test_add_padding_7: the rank of an annotation stays', async () => {
      expect(await status(sum(TensorType([Dyn]), four), sameTensor(input, tensor(...variables('s', 2))))).toBe('unsat')
    })

    it('test_add_padding_8: unknown sizes of rank 4', async () => {
      const unknown = sameTensor(other, tensor(...['a', 'b', 'c', 'd'].map((name) => D(0, Int(name)))))
      expect(await status(sum(TensorType([Dyn]), four), sameTensor(input, tensor(D(Int('s'), 1))), compare(0, '<=', Int('s')), unknown)).toBe('sat')
    })

    it('test_add_padding_9: sizes that are not 1 are equal', async () => {
      const shapes = [
        sameTensor(input, tensor(D(1, Int('s7')))),
        sameTensor(other, tensor(D(0, Int('a')), D(0, Int('b')), D(0, Int('c')), D(1, Int('s5')))),
      ]
      const model = await modelOf(transformAllConstraints(sum(Dyn, four)), ...shapes, compare(Int('s5'), '!=', 1), compare(Int('s7'), '!=', 1))
      expect(model.int(Int('s5'))).toBe(model.int(Int('s7')))
    })

    it('test_conv_static: sizes of the result are those of a run', async () => {
      for (const [channels, size, stride, padding] of [
        [2, 2, 3, 2],
        [4, 5, 2, 9],
      ] as const) {
        const model = new Chained({ conv1: new Conv2d(2, channels, size, { stride, padding, dilation: 2 }) })
        const real = model.call(torch.zeros([1, 2, 10, 20])) as Tensor
        expect(await typeIn(graph(model, TensorType([1, 2, 10, 20])), 'conv1')).toBe(String(TT(...real.shape)))
      }
    })

    const reshaped = (type: NodeType, ...target: number[]): GraphModule => graph((x: Tensor) => torch.reshape(x, target), type)
    const one = (value: m.IntTerm | number): m.Formula => sameTensor(input, tensor(D(1, value)))

    it('test_reshape_dyn: sizes that are divisible', async () => {
      const gm = reshaped(Dyn, 2, -1)
      expect(await status(gm, one(Int('s')), Or(...[2, 4, 9].map((size) => sameInt(Int('s'), size))))).toBe('sat')
      expect(await status(gm, one(9))).toBe('unsat')
    })

    it('test_reshape_annotated: the rank of an annotation stays', async () => {
      expect(await status(reshaped(TensorType([Dyn]), 2, -1))).toBe('sat')
      expect(await status(reshaped(TensorType([Dyn]), 2, -1), sameTensor(input, tensor(...variables('s', 2))))).toBe('unsat')
    })

    it('test_reshape_static_target: the only size that fits', async () => {
      expect((await modelOf(transformAllConstraints(reshaped(TensorType([Dyn]), 2, 3)), one(Int('s')))).int(Int('s'))).toBe(6)
      expect(await status(reshaped(TensorType([Dyn]), 2, 3), one(Int('s')), compare(Int('s'), '!=', 6))).toBe('unsat')
    })

    it('test_reshape_static_target2: of rank 4', async () => {
      expect((await modelOf(transformAllConstraints(reshaped(Dyn, 2, 3, 1, 1)), one(Int('s')))).int(Int('s'))).toBe(6)
      expect(await status(reshaped(Dyn, 2, 3, 1, 1), one(Int('s')), compare(Int('s'), '!=', 6))).toBe('unsat')
    })

    it('test_conv2D_maxpool2d_flatten: a whole model', async () => {
      expect(await typeIn(graph(new ConvPoolFlatten(), TensorType([4, 3, 32, 32])), 'flatten')).toBe('TensorType[(4, 672)]')
    })
    it('test_conv2D_maxpool2d_flatten_unsat: another input than the annotation says', async () => {
      expect(await status(graph(new ConvPoolFlatten(), TensorType([4, 3, 32, 32])), sameTensor(input, shape(4, 3, 32, 45)))).toBe('unsat')
    })
    it('test_conv2D_maxpool2d_flatten_dyn: any batch', async () => {
      expect(await status(graph(new ConvPoolFlatten(), TensorType([Dyn, 3, 32, 32])))).toBe('sat')
    })

    it('test_type_check_flatten: known and unknown sizes, and dimensions that are not there', async () => {
      const flat = (type: NodeType, start: number, end: number): GraphModule => graph((x: Tensor) => torch.flatten(x, start, end), type)
      expect(await typeIn(flat(TensorType([2, 3, 4, 5]), 1, 3), 'flatten')).toBe('TensorType[(2, 60)]')
      const unknown = sameTensor(input, tensor(D(1, 2), D(1, 3), D(0, Int('s')), D(1, 5)))
      expect(await typeIn(flat(TensorType([2, 3, Dyn, 5]), 1, 3), 'flatten', unknown)).toBe('TensorType[(2, Dyn)]')
      expect(await status(flat(TensorType([2, 3, Dyn]), 10, 0))).toBe('unsat')
    })
  })

  describe('whole models', () => {
    class AlexNet extends Module {
      features: Sequential = new Sequential(
        new Conv2d(3, 64, 11, { stride: 4, padding: 2 }),
        new ReLU(),
        new MaxPool2d(3, 2),
        new Conv2d(64, 192, 5, { padding: 2 }),
        new ReLU(),
        new MaxPool2d(3, 2),
        new Conv2d(192, 384, 3, { padding: 1 }),
        new ReLU(),
        new Conv2d(384, 256, 3, { padding: 1 }),
        new ReLU(),
        new Conv2d(256, 256, 3, { padding: 1 }),
        new ReLU(),
        new MaxPool2d(3, 2),
      )
      avgpool: AdaptiveAvgPool2d = new AdaptiveAvgPool2d([6, 6])
      classifier: Sequential = new Sequential(
        new Dropout(),
        new Linear(9216, 64),
        new ReLU(),
        new Dropout(),
        new Linear(64, 64),
        new ReLU(),
        new Linear(64, 10),
      )

      override forward(x: Tensor): unknown {
        return this.classifier.call(torch.flatten(this.avgpool.call(this.features.call(x) as Tensor), 1))
      }
    }
    const alexnet = (type: NodeType): GraphModule => graph(new AlexNet(), type)

    it('test_alexnet1: every layer', { timeout: 60_000 }, async () => {
      const gm = alexnet(TensorType([10, 3, 227, 227]))
      const generator = new m.ConstraintGenerator(gm)
      generator.generateConstraints()
      const model = await modelOf(transformAllConstraints(gm))
      const types = Object.fromEntries(
        [...generator.symbolDict].map(([node, symbol]) => [
          (node as { name: string }).name,
          symbol instanceof m.TVar ? String(model.type(Const(symbol.tvar))) : '',
        ]),
      )
      expect(types).toMatchObject({
        features_0: 'TensorType[(10, 64, 56, 56)]',
        features_1: 'TensorType[(10, 64, 56, 56)]',
        features_2: 'TensorType[(10, 64, 27, 27)]',
        features_12: 'TensorType[(10, 256, 6, 6)]',
        flatten: 'TensorType[(10, 9216)]',
        classifier_6: 'TensorType[(10, 10)]',
      })
    })
    it('test_alexnet2: a wrong number of channels', { timeout: 60_000 }, async () =>
      expect(await status(alexnet(TensorType([Dyn, 4, 227, 227])))).toBe('unsat'),
    )
    it('test_alexnet3: unknown channels', { timeout: 60_000 }, async () =>
      expect(await status(alexnet(TensorType([Dyn, Dyn, 227, 227])))).toBe('sat'),
    )
    it('test_alexnet4: a wrong rank', { timeout: 60_000 }, async () => expect(await status(alexnet(TensorType([Dyn, Dyn, 227])))).toBe('unsat'))

    const resnet = (): GraphModule => graph(new ResNet50(4, 10), Dyn)
    if (quick)
      it('test_resnet50_unsat: a wrong rank', { timeout: 120_000 }, async () =>
        expect(await status(resnet(), sameTensor(input, shape(1, 3, 224)))).toBe('unsat'),
      )
    if (quick)
      it('test_resnet50: the shape of the result', { timeout: 120_000 }, async () => {
        expect(await typeIn(resnet(), 'fc', sameTensor(input, shape(1, 3, 224, 224)))).toBe('TensorType[(1, 10)]')
      })
    const anyBatch = sameTensor(input, tensor(D(1, Int('batch')), ...[3, 224, 224].map((size) => D(1, size))))
    if (quick)
      it('test_resnet502: any batch', { timeout: 120_000 }, async () => {
        const gm = resnet()
        const model = await modelOf(transformAllConstraints(gm), anyBatch, compare(4, '<', Int('batch')))
        expect(await typeIn(gm, 'fc', anyBatch, sameInt(Int('batch'), model.int(Int('batch'))))).toBe(`TensorType[(${model.int(Int('batch'))}, 10)]`)
      })
    if (quick)
      it('test_resnet503: the batch of the result is that of the input', { timeout: 120_000 }, async () => {
        const gm = resnet()
        const result = sameTensor(typeOf(gm, 'fc'), tensor(D(1, Int('d1')), D(1, Int('d2'))))
        expect(await status(gm, anyBatch, result)).toBe('sat')
        expect(await status(gm, anyBatch, result, compare(Int('batch'), '!=', Int('d1')))).toBe('unsat')
      })
  })
})

describe('the transformation alone', () => {
  const step = (constraint: m.Constraint): m.Constraint => m.transformConstraint(constraint, 0)[0]
  const parts = (constraint: m.Constraint): number =>
    constraint instanceof m.Conj ? constraint.conjuncts.length : constraint instanceof m.Disj ? constraint.disjuncts.length : 0
  const x = new m.TVar('x')

  it('test_precision: what an annotation says', () => {
    expect(step(new m.BinConstraintT(Dyn, x, m.opPrecision)).equals(new m.T())).toBe(true)
    expect(parts(step(new m.BinConstraintT(TensorType([1, Dyn, 3]), x, m.opPrecision)))).toBe(7)
  })

  it('test_matching: Dyn, or a tensor of rank 4', () => {
    expect(parts(step(new m.BinConstraintT(x, TensorType(['a', 'b', 'c', 'd'].map((name) => new m.DVar(name))), m.opMatching)))).toBe(2)
  })

  it('test_consistency: Dyn, or one of four ranks', () => {
    const first = step(new m.BinConstraintT(x, TensorType([new m.DVar('a'), new m.DVar('b')]), m.opConsistency))
    expect([parts(first), parts(step(first))]).toEqual([5, 5])
  })
})
