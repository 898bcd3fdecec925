// splitConstSubgraphs against PyTorch's results.
import { describe, expect, it } from 'vitest'
import { Tensor, nn, torch } from 'tensorfx'
import { symbolicTrace } from 'tensorfx/fx'
import type { GraphModule, Node } from 'tensorfx/fx'
import { getUniqueAttrNameInModule, splitConstSubgraphs } from 'tensorfx/fx/experimental'
import type { FoldedGraphModule } from 'tensorfx/fx/experimental'
import { ShapeProp } from 'tensorfx/fx/passes'
import { expectGraph, readExtra } from './golden.ts'
import type { GoldenGraph } from './golden.ts'

interface Folded {
  readonly before: GoldenGraph
  readonly folded: GoldenGraph
  readonly const_subgraph?: GoldenGraph
  readonly attrs_name?: string
}

const golden = readExtra<Readonly<Record<'A' | 'B' | 'C' | 'D', Folded>> & { skip: GoldenGraph }>('const_fold')

class A extends nn.Module {
  attr_1 = new nn.Parameter(torch.tensor([[-0.9]]))
  attr_2 = new nn.Parameter(torch.tensor([[17.1]]))
  override forward(x: Tensor, y: Tensor): Tensor {
    const a = this.attr_1.add(this.attr_1)
    return x.sub(a).mul(y).add(this.attr_2)
  }
}
class B extends nn.Module {
  x = new nn.Parameter(torch.ones([2, 2]))
  override forward(i: Tensor): Tensor[] {
    const w = this.x.t().mul(2).add(1)
    const v = torch.relu(this.x)
    return [i.matmul(w).add(v), torch.neg(v)]
  }
}
class C extends nn.Module {
  lin = new nn.Linear(3, 3)
  p = new nn.Parameter(torch.ones([4, 3]))
  override forward(x: Tensor): Tensor {
    return this.lin.call(this.p).add(x)
  }
}
class D extends nn.Module {
  override forward(x: Tensor): Tensor {
    return x.add(1)
  }
}

const cases: readonly [keyof typeof golden & ('A' | 'B' | 'C' | 'D'), () => nn.Module, () => Tensor[]][] = [
  ['A', () => new A(), () => [torch.randn([2, 2]), torch.randn([2, 2])]],
  ['B', () => new B(), () => [torch.randn([2, 2])]],
  ['C', () => new C(), () => [torch.randn([4, 3])]],
  ['D', () => new D(), () => [torch.randn([2])]],
]

describe('splitConstSubgraphs', () => {
  it.each(cases)('%s is folded as PyTorch does, and computes the same', (name, make, inputs) => {
    const model = make()
    const gm = symbolicTrace(model)
    expectGraph(gm, golden[name].before)
    const folded = splitConstSubgraphs(gm)
    expectGraph(folded, golden[name].folded)
    if (golden[name].const_subgraph === undefined) expect(folded.constSubgraphModule).toBeNull()
    else {
      expectGraph(folded.constSubgraphModule as GraphModule, golden[name].const_subgraph)
      expect(folded.fxConstFoldedAttrsName).toBe(golden[name].attrs_name)
    }
    const args = inputs()
    const flat = (value: unknown): Tensor[] => (Array.isArray(value) ? (value as Tensor[]) : [value as Tensor])
    const want = flat((model.call as (...a: Tensor[]) => unknown)(...args))
    for (let run = 0; run < 2; run++) flat(folded.call(...args)).forEach((value, i) => expect(torch.allclose(value, want[i] as Tensor)).toBe(true))
  })

  it('folds once, before the first run or when told', () => {
    const folded = splitConstSubgraphs(new A())
    expect(folded.hasFoldingBeenRun).toBe(false)
    folded.runFolding()
    expect([...folded.namedParameters()].map(([name]) => name)).toContain('_FX_CONST_FOLDED_ATTRS')
    expect(() => folded.runFolding()).toThrow('the constants of this module have already been computed')
  })

  it('test_check_skip_folding_quant_dequant_pattern: leaves what it is told to', () => {
    const gm = symbolicTrace(new A())
    expectGraph(
      splitConstSubgraphs(gm, (node) => node.target === 'add'),
      golden.skip,
    )
  })

  it('test_const_fold_basic_one_attr_name_collision: finds a free name', () => {
    class Taken extends A {
      _FX_CONST_FOLDED_ATTRS = new nn.Parameter(torch.ones([1]))
      override forward(x: Tensor, y: Tensor): Tensor {
        return super.forward(x, y).add(this._FX_CONST_FOLDED_ATTRS)
      }
    }
    const model = new Taken()
    const folded = splitConstSubgraphs(model)
    expect(folded.fxConstFoldedAttrsName).toBe('_FX_CONST_FOLDED_ATTRS_1')
    expect(['_FX_CONST_FOLDED_ATTRS', '0.a b', 'free'].map((name) => getUniqueAttrNameInModule(model, name))).toEqual([
      '_FX_CONST_FOLDED_ATTRS_1',
      '_0_a_b',
      'free',
    ])
    const [x, y] = [torch.randn([2]), torch.randn([2])]
    expect(torch.allclose(folded.call(x, y) as Tensor, model.call(x, y))).toBe(true)
  })

  it('test_const_fold_unused_placeholder: parameters that nobody uses stay', () => {
    const folded = splitConstSubgraphs(symbolicTrace(new A()))
    expect(folded.graph.findNodes({ op: 'placeholder' })).toHaveLength(2)
  })

  it('does not fold random operators, nor layers whose mode matters', () => {
    class Noisy extends nn.Module {
      p = new nn.Parameter(torch.ones([50]))
      drop = new nn.Dropout()
      override forward(x: Tensor): Tensor {
        return x.add(this.drop.call(this.p))
      }
    }
    expect(splitConstSubgraphs(new Noisy()).constSubgraphModule).toBeNull()
    const still = new Noisy()
    still.eval()
    expect(splitConstSubgraphs(still).constSubgraphModule).not.toBeNull()
  })

  it('test_retain_node_meta: the folded value has the meta of what it replaces', () => {
    const gm = symbolicTrace(new A())
    for (const node of gm.graph.nodes) node.meta['note'] = node.name
    const folded = splitConstSubgraphs(gm)
    expect(folded.graph.findNodes({ op: 'call_method', target: 'sub' })[0]?.meta['note']).toBe('sub')
  })
})

/** The folded module of a model: computes the same, before and after folding, and reads the folded attribute. */
function check(model: nn.Module | GraphModule, inputs: readonly Tensor[]): FoldedGraphModule {
  const want = (model.call as (...a: readonly Tensor[]) => unknown)(...inputs)
  const folded = splitConstSubgraphs(model)
  folded.graph.lint()
  expect(folded.constSubgraphModule).not.toBeNull()
  const reads = [...folded.graph.nodes].filter((n) => n.op === 'get_attr').map((n) => n.target)
  expect(reads).toContain(folded.fxConstFoldedAttrsName)
  const flat = (value: unknown): Tensor[] =>
    value instanceof Tensor ? [value] : Object.values(value as Readonly<Record<string, unknown>>).flatMap(flat)
  for (let run = 0; run < 2; run++) {
    const got = folded.call(...inputs)
    expect(Object.keys(got as object)).toEqual(Object.keys(want as object))
    flat(got).forEach((value, i) => expect(torch.allclose(value, flat(want)[i] as Tensor)).toBe(true))
  }
  return folded
}

const param = (value: number): nn.Parameter => new nn.Parameter(torch.tensor([[value]]))
const input = (): Tensor => torch.randn([2, 2])
const opsOf = (gm: GraphModule): string[] => [...gm.graph.nodes].map((n) => n.op)

describe('splitConstSubgraphs, as PyTorch tests it', () => {
  it('test_const_fold_basic_one_attr_no_name_collision', () => {
    class M extends nn.Module {
      attr_1 = param(-0.9)
      override forward(x: Tensor, y: Tensor): Tensor {
        const a = this.attr_1.add(this.attr_1)
        return x.sub(a).mul(y)
      }
    }
    expect(check(new M(), [input(), input()]).fxConstFoldedAttrsName).toBe('_FX_CONST_FOLDED_ATTRS')
  })

  it('test_const_fold_basic_placeholder_reordered: a parameter behind an operation', () => {
    class M extends nn.Module {
      weight = param(3)
      override forward(x: Tensor, y: Tensor): Tensor {
        return this.weight.mul(2).mul(x).add(y)
      }
    }
    const gm = symbolicTrace(new M())
    const second = gm.graph.findNodes({ op: 'placeholder', target: 'y' })[0] as Node
    const mul = gm.graph.findNodes({ op: 'call_method' })[0] as Node
    mul.append(second)
    gm.graph.lint()
    gm.recompile()
    check(gm, [input(), input()])
  })

  it('test_const_fold_noop: without constants nothing is split off', () => {
    class M extends nn.Module {
      attr1 = param(-0.9)
      override forward(x: Tensor): Tensor {
        return x.sub(this.attr1)
      }
    }
    const model = new M()
    const folded = splitConstSubgraphs(model)
    expect(folded.constSubgraphModule).toBeNull()
    const x = input()
    expect(torch.allclose(folded.call(x), model.call(x))).toBe(true)
  })

  it('test_const_fold_basic_two_attr_three_input', () => {
    class M extends nn.Module {
      attr1 = param(-0.9)
      attr_2 = param(1.32)
      override forward(x: Tensor, y: Tensor, z: Tensor): Tensor {
        const a = this.attr1.add(this.attr1)
        const b = this.attr1.sub(this.attr_2)
        return x.sub(a).mul(y.add(b)).sub(z)
      }
    }
    check(new M(), [input(), input(), input()])
  })

  it('test_const_fold_basic_two_attr', () => {
    class M extends nn.Module {
      attr1 = new nn.Parameter(torch.randn([2, 3]))
      attr2 = new nn.Parameter(torch.randn([2, 3]))
      override forward(x: Tensor): Tensor {
        return x.sub(this.attr1.add(this.attr2))
      }
    }
    check(new M(), [torch.randn([2, 3])])
  })

  it('test_const_fold_multi_const_folded_attrs: several values are folded', () => {
    class M extends nn.Module {
      attr1 = new nn.Parameter(torch.randn([4, 4]))
      attr2 = new nn.Parameter(torch.randn([4, 4]))
      override forward(x: Tensor, y: Tensor): Tensor {
        const [a, b] = [this.attr1.add(this.attr1), this.attr2.permute([1, 0])]
        return x.sub(a).mul(y.add(b))
      }
    }
    const folded = check(new M(), [torch.randn([4, 4]), torch.randn([4, 4])])
    expect(opsOf(folded).filter((op) => op === 'call_module')).toEqual([])
  })

  it('test_const_fold_submod_hierarchy: parameters of nested modules', () => {
    class Traced extends nn.Module {
      my_param = new nn.Parameter(torch.randn([2, 2]))
      override forward(): Tensor {
        return this.my_param.add(this.my_param)
      }
    }
    class M extends nn.Module {
      my_module = new Traced()
      override forward(x: Tensor): Tensor {
        return this.my_module.call().add(x)
      }
    }
    check(new M(), [input()])
  })

  it('test_const_fold_has_inlined_call_module_node: the rest may call modules', () => {
    class M extends nn.Module {
      my_param = new nn.Parameter(torch.randn([2, 3]))
      mod = new nn.Identity()
      override forward(x: Tensor, y: Tensor): Tensor {
        return torch.relu(this.mod.call(x.add(y))).add(this.my_param.mul(2))
      }
    }
    const folded = check(new M(), [torch.randn([2, 3]), torch.randn([2, 3])])
    expect(opsOf(folded)).toContain('call_module')
  })

  it('test_const_fold_module_attr: a parameter of a module that is called', () => {
    class M extends nn.Module {
      const = new nn.Parameter(torch.randn([2, 3]))
      mod = new nn.Linear(3, 3)
      override forward(x: Tensor, y: Tensor): Tensor {
        const a = this.const.add(this.mod.bias as Tensor)
        return this.mod.call(x.add(y).mul(a))
      }
    }
    check(new M(), [torch.randn([2, 3]), torch.randn([2, 3])])
  })

  it('test_dict_output, test_two_outputs, test_three_outputs: results of any structure', () => {
    class Base extends nn.Module {
      const = new nn.Parameter(torch.randn([2, 3]))
      protected folded(): Tensor {
        return this.const.add(this.const)
      }
      override forward(x: Tensor, y: Tensor): unknown {
        return { result: x.mul(this.folded()).add(y) }
      }
    }
    class Two extends Base {
      override forward(x: Tensor, y: Tensor): unknown {
        const a = this.folded()
        return [x.add(a), y.mul(a)]
      }
    }
    class Three extends Base {
      override forward(x: Tensor, y: Tensor): unknown {
        const a = this.folded()
        return [x.add(a), y.mul(a), x.sub(y)]
      }
    }
    for (const model of [new Base(), new Two(), new Three()]) check(model, [torch.randn([2, 3]), torch.randn([2, 3])])
  })

  it('test_check_inline_non_const, test_check_inline_non_const_mult_return: the rest stands in the module itself', () => {
    class One extends nn.Module {
      attr = new nn.Parameter(torch.randn([2, 2]))
      override forward(x: Tensor): Tensor | Tensor[] {
        return x.sub(this.attr.add(this.attr))
      }
    }
    class Several extends One {
      override forward(x: Tensor): Tensor[] {
        const a = this.attr.add(this.attr)
        return [x.sub(a), x.add(a)]
      }
    }
    for (const model of [new One(), new Several()]) {
      const folded = check(model, [input()])
      expect(opsOf(folded)).not.toContain('call_module')
      expect([...folded.namedChildren()].filter(([name]) => name.startsWith('submod'))).toEqual([])
    }
  })

  it('test_fold_module: a module that is called with constants only', () => {
    class M extends nn.Module {
      lin_input = new nn.Parameter(torch.randn([4, 4]))
      lin = new nn.Linear(4, 4)
      override forward(x: Tensor): Tensor {
        return this.lin.call(this.lin_input).add(x)
      }
    }
    expect(opsOf(check(new M(), [torch.randn([4, 4])]))).not.toContain('call_module')
  })

  it('test_const_fold_tensor_meta: whether gradients are wanted is what ShapeProp notes', () => {
    for (const requiresGrad of [true, false]) {
      class M extends nn.Module {
        attr_1 = new nn.Parameter(torch.tensor([[-0.9]]), { requiresGrad })
        attr_2 = new nn.Parameter(torch.tensor([[17.1]]), { requiresGrad })
        override forward(x: Tensor, y: Tensor): Tensor {
          const a = this.attr_1.add(this.attr_1)
          return x.sub(a).mul(y).add(this.attr_2)
        }
      }
      const folded = check(new M(), [input(), input()])
      const read = folded.graph.findNodes({ op: 'get_attr', target: folded.fxConstFoldedAttrsName as string })[0] as Node
      new ShapeProp(folded).propagate(input(), input())
      expect((read.meta['tensor_meta'] as { requiresGrad: boolean }).requiresGrad).toBe(requiresGrad)
      expect((folded.attribute(read.target as string) as Tensor).requiresGrad).toBe(requiresGrad)
    }
  })

  it('unused submodules may be removed before the constants are computed', () => {
    class M extends nn.Module {
      weight = new nn.Parameter(torch.tensor([1, 2]))
      unused = new nn.Linear(2, 2)
      override forward(x: Tensor): Tensor {
        return x.add(this.weight.mul(2))
      }
    }
    const folded = splitConstSubgraphs(new M())
    folded.deleteAllUnusedSubmodules()
    expect((folded.call(torch.zeros([2])) as Tensor).toArray()).toEqual([2, 4])
    expect([...folded.namedModules()].map(([path]) => path)).not.toContain('unused')
  })
})
