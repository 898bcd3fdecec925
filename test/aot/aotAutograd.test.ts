// PyTorch's tests of aliasing and mutation in AOTAutograd (test/functorch/test_aotdispatch.py, TestAOTAutograd), by what they are about: each program through aotFunction must be, for whoever calls it,
// what it is in eager mode.
import { describe, expect, it } from 'vitest'
import { noGrad, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Function } from 'tensorfx/autograd'
import type { FunctionContext } from 'tensorfx/autograd'
import { aotFunction } from 'tensorfx/aot'
import { third } from '../helpers/rotation.ts'
import { differences, inputsOf, interpreted } from './asInEager.ts'
import type { Inputs } from './asInEager.ts'

const ones = (...shape: number[]): Tensor => torch.ones(shape)
const ramp = (...shape: number[]): Tensor => torch.arange(1, shape.reduce((a, b) => a * b, 1) + 1, { dtype: 'float32' }).reshape(shape)

type Fn = (...args: never[]) => unknown

/** With inputs without gradients, with leaves that have some, and with results of operators. */
function same(fn: Fn, make: () => readonly Tensor[], kinds: readonly ('plain' | 'leaf' | 'inner')[] = ['plain', 'inner']): void {
  for (const kind of kinds) expect(differences(fn, inputsOf(make, { written: kind !== 'leaf', requiresGrad: kind !== 'plain' })), kind).toEqual([])
}

/** With arguments that are made of bases: none of them, or all, require grad. */
function sameOn(fn: Fn, make: (base: (...shape: number[]) => Tensor) => readonly unknown[]): void {
  for (const requiresGrad of [false, true]) {
    const inputs = (): Inputs => {
      const leaves: Tensor[] = []
      const args = make((...shape) => {
        const leaf = ramp(...shape).requiresGrad_(requiresGrad)
        leaves.push(leaf)
        return leaf.add(1)
      })
      return { leaves, args }
    }
    expect(differences(fn, inputs), `requiresGrad ${requiresGrad}`).toEqual([])
  }
}

describe('inputs that are written', () => {
  it('test_squeeze_mutation', () =>
    same(
      (a: Tensor) => a.add(a.clone().squeeze(-1).unsqueeze(-1).add_(1)),
      () => [ramp(3, 1)],
      ['plain', 'leaf', 'inner'],
    ))
  it('test_input_mutation_simple', () =>
    same(
      (a: Tensor) => a.mul_(2).mul(3),
      () => [ramp(3, 3)],
      ['plain', 'leaf', 'inner'],
    ))
  it('test_input_mutation_simple_with_none_and_nontensor', () => {
    for (const requiresGrad of [false, true])
      expect(
        differences(
          (a: Tensor, _: null, c: number) => a.mul(c),
          () => {
            const a = ones(3, 3).requiresGrad_(requiresGrad)
            return { leaves: [a], args: [a, null, 3] }
          },
        ),
      ).toEqual([])
  })
  it('test_mutates_input_noncontiguous', () =>
    sameOn(
      (a: Tensor) => {
        a.add_(1)
        return []
      },
      (base) => [base(4).asStrided([2], [2])],
    ))
  it('test_input_mutation_noncontiguous', () =>
    sameOn(
      (a: Tensor) => a.mul_(2).add(1),
      (base) => [base(2, 2).select(1, 0)],
    ))
  it('test_input_mutation_modifies_autograd_meta_of_aliases: views of an input that is written get its new history', () => {
    for (const run of [(f: (a: Tensor) => Tensor) => f, (f: (a: Tensor) => Tensor) => aotFunction(f, { fwCompiler: interpreted })]) {
      const leaf = ones(3, 3).requiresGrad_()
      const x = leaf.clone()
      const view = x.view(3, 3)
      run((a) => a.mul_(2).add(1).detach())(x)
      expect([view.gradFn?.name, view.toArray()]).toEqual([run.length === 1 ? view.gradFn?.name : '', x.toArray()])
      expect(view.gradFn?.name).toMatch(/ViewBackward0|AsStridedBackward0/)
      x.mul(view).sum().backward()
      expect(leaf.grad?.toArray()).toEqual(ones(3, 3).mul(8).toArray())
    }
  })
  it('test_input_mutation_is_output', () =>
    same(
      (a: Tensor) => a.mul_(2),
      () => [ramp(3, 3)],
      ['plain', 'leaf', 'inner'],
    ))
  it('test_input_mutation_multiple', () =>
    same(
      (a: Tensor, b: Tensor, c: Tensor) => {
        a.mul_(2)
        c.mul_(2)
        return a.add(b).add(c)
      },
      () => [ramp(3, 3), ones(3, 3), ramp(3, 3)],
    ))
  it('test_input_mutation_requires_grad_detach', () =>
    same(
      (a: Tensor) => {
        a.detach().mul_(2)
        return a.add(3)
      },
      () => [ramp(4)],
      ['plain', 'leaf', 'inner'],
    ))
  const underNoGrad = (a: Tensor): Tensor => {
    noGrad(() => a.mul_(2))
    return a.add(3)
  }
  it('test_input_mutation_requires_grad_no_grad', () => same(underNoGrad, () => [ramp(4)], ['plain', 'leaf', 'inner']))
  it('test_input_mutation_requires_grad_no_grad_inference_graph', () =>
    same(
      (a: Tensor) => noGrad(() => a.mul_(2).add(3)),
      () => [ramp(4)],
      ['plain', 'leaf', 'inner'],
    ))
  it('test_input_mutation_requires_grad_no_grad_detach_mixed', () =>
    same(
      (a: Tensor) => {
        a.detach().mul_(2)
        a.mul_(3)
        noGrad(() => a.mul_(4))
        return a.add(5)
      },
      () => [ramp(4)],
      ['plain', 'leaf', 'inner'],
    ))
  it('test_input_mutation_batchnorm: what is written is also saved for the backward', () => {
    for (const requiresGrad of [false, true])
      expect(
        differences(
          (x: Tensor, w: Tensor, b: Tensor, mean: Tensor, variance: Tensor) =>
            torch.nn.functional.batchNorm(x, mean, variance, { weight: w, bias: b, training: true, momentum: 0.5 }),
          () => {
            const [x, w, b] = [ramp(2, 5, 1, 2), ramp(5), ramp(5)].map((t) => t.requiresGrad_(requiresGrad)) as [Tensor, Tensor, Tensor]
            return { leaves: [x, w, b], args: [x, w, b, ones(5), ones(5)] }
          },
        ),
      ).toEqual([])
  })
  it('test_default_partitioner_saves_symints_not_tensors_for_bw: a saved input may be written where only its shape is read', () =>
    same(
      (a: Tensor) => {
        const b = a.select(0, 0)
        return b.maskedFill_(torch.onesLike(b, { dtype: 'bool' }), 0)
      },
      () => [ramp(2, 2)],
    ))
  it('test_view_detach', () =>
    same(
      (a: Tensor) => {
        const before = a.detach()
        a.mul_(2)
        return [a, before]
      },
      () => [ramp(3, 3)],
      ['plain', 'leaf', 'inner'],
    ))
})

describe('inputs that get another shape', () => {
  it('test_input_mutation_metadata', () =>
    same(
      (a: Tensor, b: Tensor) => {
        a.transpose_(1, 0)
        return a.add(b)
      },
      () => [ramp(3, 3), ones(3, 3)],
      ['plain', 'leaf', 'inner'],
    ))
  it('test_input_mutation_metadata2', () =>
    same(
      (a: Tensor) => {
        a.transpose_(1, 0)
        a.mul_(2)
        return a.add(1)
      },
      () => [ramp(2, 3)],
    ))
  it('test_input_data_and_metadata_mutation', () =>
    same(
      (a: Tensor) => {
        a.t_()
        a.select(0, 0).mul_(2)
        return a.view(a.shape)
      },
      () => [ramp(3, 3)],
    ))
  it('test_input_output_view_metadata_mutate_multiple', () =>
    same(
      (a: Tensor, b: Tensor, c: Tensor) => {
        b.mul_(3)
        c.t_()
        return [a.view(2, 2), b.view(2, 2), c.view(2, 2)]
      },
      () => [ramp(2, 2), ramp(2, 2), ramp(2, 2)],
    ))
  it('test_input_mutation_output_view_multiple', () =>
    same(
      (a: Tensor, b: Tensor, c: Tensor, d: Tensor) => {
        b.transpose_(1, 0)
        c.add_(1)
        return [d.add(1), b.diagonal(), a.add(c)]
      },
      () => [ramp(2, 2), ramp(2, 2), ones(2, 2), ones(2, 2)],
    ))
  it('test_view_and_inplace_view', () =>
    same(
      (a: Tensor, b: Tensor) => {
        a.t_()
        return [b.view(b.shape), a.view(a.shape)]
      },
      () => [ramp(3, 3), ramp(3, 3)],
    ))
  it('test_input_data_and_metadata_mutation_aliases_other_input', () =>
    sameOn(
      (a: Tensor, b: Tensor) => {
        a.mul_(2)
        b.t_()
        return a.mul(b)
      },
      (base) => {
        const x = base(2, 2, 2)
        return [x.select(0, 0), x.select(0, 0)]
      },
    ))
  it('test_input_metadata_mutation_aliases', () =>
    sameOn(
      (a: Tensor, b: Tensor) => {
        a.t_()
        return a.add(b)
      },
      (base) => {
        const x = base(2, 2)
        return [x.view(-1), x.view(-1)]
      },
    ))
  it('test_output_all_alias_types', () =>
    sameOn(
      (a: Tensor) => {
        a.transpose_(1, 0)
        const tmp = a.mul(2)
        return [tmp.squeeze(), tmp.transpose(1, 0), a.unsqueeze(0)]
      },
      (base) => [base(1, 2, 4)],
    ))
  it('test_dupe_arg_torture', () =>
    sameOn(
      (x: Tensor, y: Tensor) => {
        x.t_()
        y.unsqueeze_(0)
        return x.add(y)
      },
      (base) => {
        const x = base(3, 3)
        return [x, x]
      },
    ))
})

describe('set_', () => {
  const nothing = (a: Tensor): Tensor => torch.arange(9, { dtype: a.dtype })
  it('test_input_mutation_set__input_mutation', () =>
    same(
      (a: Tensor) => {
        const b = nothing(a).reshape(3, 3)
        noGrad(() => a.set_(b))
        return a.mul(b)
      },
      () => [ramp(3, 3)],
      ['plain', 'leaf', 'inner'],
    ))
  it('test_set__steals_view_chain', () =>
    same(
      (a: Tensor, b: Tensor) => {
        const own = a.mul(2)
        const slice = b.mul(2).select(0, 1).view(3, 3)
        own.set_(slice)
        own.view(-1).mul_(2)
        return own.mul(slice)
      },
      () => [ones(3, 3), ramp(3, 9)],
      ['plain'],
    ))
  it('test_set__and_data_mutation_good', () =>
    same(
      (a: Tensor, b: Tensor) => {
        noGrad(() => a.set_(b))
        b.mul_(2)
        return a.add(b)
      },
      () => [ones(3, 3), ramp(3, 3)],
    ))
  it('test_set__and_data_mutation_bad: a view of what an input was is written after it has got other memory (difference: write-after-set)', () =>
    same(
      (a: Tensor) => {
        const view = a.view(-1)
        const other = ones(3, 3)
        noGrad(() => {
          a.set_(other)
          view.mul_(2)
        })
        return a.add(other)
      },
      () => [ramp(3, 3)],
      ['plain', 'leaf', 'inner'],
    ))
  it('test_input_mutation_set__nop', () =>
    same(
      (a: Tensor) => {
        const b = nothing(a)
        const was = a.view(a.shape)
        noGrad(() => {
          a.set_(b)
          a.set_(was)
        })
        return a.add(b.reshape(3, 3))
      },
      () => [ramp(3, 3)],
      ['plain'],
    ))
})

describe('outputs that are views of inputs', () => {
  it('test_input_output_view_simple', () =>
    same(
      (a: Tensor) => a.view(-1),
      () => [ramp(2, 2)],
      ['plain', 'leaf', 'inner'],
    ))
  it('test_input_output_view_mutate_multiple', () =>
    same(
      (a: Tensor, b: Tensor, c: Tensor) => {
        a.mul_(2)
        c.mul_(3)
        return [b.view(2, 2), c.view(2, 2)]
      },
      () => [ramp(2, 2), ramp(2, 2), ramp(2, 2)],
    ))
  it('test_input_mutation_and_output_view', () =>
    same(
      (a: Tensor) => a.add_(1).view(-1),
      () => [ramp(2, 2)],
    ))
  it('test_output_aliases_input_multi_output_view', () => {
    same(
      (a: Tensor) => a.unbind(0),
      () => [ramp(3, 3)],
      ['plain', 'leaf', 'inner'],
    )
    same(
      (a: Tensor) => [...a.unbind(0), a.view(a.shape)],
      () => [ramp(3, 3)],
      ['plain', 'leaf', 'inner'],
    )
  })
  it('test_output_aliases_input_multi_output_view_should_raise_autograd_error: here they may be written (difference: list-views-writable)', () =>
    same(
      (a: Tensor) => {
        const rows = a.unbind(0)
        rows[1]?.mul_(2)
        return rows
      },
      () => [ramp(3, 3)],
    ))
  it('test_output_aliases_multiple_inputs_get_correct_one', () =>
    sameOn(
      (a: Tensor, b: Tensor) => [a.view(a.shape), b.view(b.shape)],
      (base) => {
        const x = base(2, 2)
        return [x.view(-1), x.select(0, 0)]
      },
    ))
  it('test_some_outputs_dont_require_grad_view', () =>
    same(
      (a: Tensor, b: Tensor) => [a.detach(), b],
      () => [ramp(3, 3), ones(3, 3)],
      ['plain', 'leaf', 'inner'],
    ))
  it('test_some_output_requires_grad_input_doesnt', () =>
    expect(
      differences(
        (a: Tensor) => a.view(-1).requiresGrad_(true),
        () => ({ leaves: [], args: [ramp(3, 3)] }),
      ),
    ).toEqual([]))
  it('test_input_output_aliase_custom_autograd_function: a Function that returns its input', () => {
    class Half extends Function {
      static override forward(_ctx: FunctionContext, x: Tensor): Tensor {
        return x
      }
      static override backward(_ctx: FunctionContext, g: Tensor): Tensor {
        return g.mul(0.5)
      }
    }
    const make = inputsOf(() => [ramp(2, 2)], { requiresGrad: true })
    const run = aotFunction((x: Tensor) => Half.apply(x), { fwCompiler: interpreted })
    const { leaves, args } = make()
    run(args[0] as Tensor)
      .mul(3)
      .sum()
      .backward()
    expect(leaves[0]?.grad?.toArray()).toEqual(ones(2, 2).mul(1.5).toArray())
  })
})

describe('outputs that are views of what the function computes', () => {
  it('test_outputs_are_aliased', () =>
    same(
      (a: Tensor) => {
        const b = a.mul(2)
        return [b, b.view(-1)]
      },
      () => [ramp(3)],
      ['plain', 'leaf'],
    ))
  it('test_output_aliases_intermediate_single', () =>
    same(
      (a: Tensor) => a.mul(3).view(-1),
      () => [ramp(3, 3)],
      ['plain', 'leaf'],
    ))
  it('test_output_aliases_intermediate_mutation_linear', () =>
    same(
      (a: Tensor) => a.add(1).view(-1),
      () => [ramp(3, 3)],
      ['leaf'],
    ))
  it('test_output_aliases_intermediate_multi_output_view', () => {
    same(
      (a: Tensor) => a.mul(3).unbind(0),
      () => [ramp(3, 3)],
      ['plain', 'leaf'],
    )
    for (const more of [(out: Tensor) => [out], (out: Tensor) => [out.view(out.shape)], (out: Tensor) => [out, out.view(out.shape)]])
      same(
        (a: Tensor) => {
          const out = a.mul(3)
          return [...out.unbind(0), ...more(out)]
        },
        () => [ramp(3, 3)],
        ['plain', 'leaf'],
      )
  })
  it('test_output_aliases_intermediate_no_grad', () => {
    for (const requiresGrad of [false, true])
      expect(
        differences(
          (a: Tensor, b: Tensor) => [a.mul(3).view(-1), b.add(1)],
          () => {
            const b = ones(3, 3).requiresGrad_(requiresGrad)
            return { leaves: [b], args: [ramp(3, 3), b] }
          },
        ),
      ).toEqual([])
  })
  const returning = (results: (out: Tensor) => readonly Tensor[]) => (a: Tensor) => results(a.mul(3))
  it.each([
    ['test_output_aliases_intermediate_returned_multiple_times', (out: Tensor) => [out, out.view(-1), out]],
    ['test_output_aliases_intermediate_multiple', (out: Tensor) => [out.view(-1), out.view(-1)]],
    ['test_output_aliases_intermediate_and_returned', (out: Tensor) => [out.view(-1), out]],
    ['test_output_aliases_intermediate_and_returned_flipped', (out: Tensor) => [out, out.view(-1)]],
    ['test_output_aliases_intermediate_and_returned_different_grad', (out: Tensor) => [out.view(-1), out, out.select(0, 0).detach()]],
  ])('%s', (_, results) => same(returning(results), () => [ramp(3, 3)], ['plain', 'leaf']))
  it('test_output_aliases_intermediate_multiple_mixed', () =>
    same(
      (a: Tensor) => {
        const [one, two] = [a.mul(3), a.mul(4)]
        return [one.view(-1), two.transpose(1, 0), one.transpose(1, 0)]
      },
      () => [ramp(3, 3)],
      ['plain', 'leaf'],
    ))
  it('test_output_aliases_intermediate_inplace_view', () =>
    same(
      (a: Tensor) => a.mul(3).t_(),
      () => [ramp(2, 4)],
      ['plain', 'leaf'],
    ))
  it('test_output_aliases_intermediate_inplace_view_with_detach', () =>
    same(
      (a: Tensor) => [a.mul(3).t_().detach_(), a.add(1)],
      () => [ramp(2, 4)],
      ['plain', 'leaf'],
    ))
  it('test_output_aliases_intermediate_inplace_view_and_view', () =>
    same(
      (a: Tensor) => {
        const out = a.mul(3)
        const before = out.unsqueeze(0)
        out.t_()
        return [before, out, out.unsqueeze(0)]
      },
      () => [ramp(2, 4)],
      ['plain', 'leaf'],
    ))
  it('test_some_outputs_dont_require_grad_non_view', () =>
    same(
      (a: Tensor, b: Tensor) => [a.add(1).detach(), b],
      () => [ramp(3, 3), ones(3, 3)],
      ['plain', 'leaf', 'inner'],
    ))
})

describe('inputs that share memory', () => {
  it('test_input_mutation_false_aliasing', () => {
    const f = (a: Tensor, b: Tensor): Tensor => {
      a.mul_(3)
      b.mul_(2)
      return a.clone().view(-1).add(b.clone().view(-1))
    }
    const layouts: readonly ((x: Tensor) => readonly [Tensor, Tensor])[] = [
      (x) => [x.narrow(0, 0, 32), x.narrow(0, 32, 32)],
      (x) => [x.asStrided([4, 4], [8, 1], 0), x.asStrided([4, 4], [8, 1], 28)],
      (x) => [x.view(8, 8).narrow(1, 0, 4), x.view(8, 8).narrow(1, 4, 4)],
      (x) => [x.asStrided([4, 4], [9, 1], 0), x.asStrided([4, 4], [9, 1], 22)],
      (x) => [x.asStrided([4, 4], [9, 1], 0), x.asStrided([4, 4], [9, 1], 23)],
      (x) => [x.asStrided([4, 4], [9, 1], 0), x.asStrided([4, 4], [9, 1], 24)],
      (x) => [x.asStrided([4, 4], [9, 1], 0), x.asStrided([4, 4], [9, 1], 25)],
    ]
    for (const layout of third(layouts)) sameOn(f, (base) => layout(base(64)))
  })
  const adds = (a: Tensor, b: Tensor): Tensor => a.add_(1).add(b)
  it('test_input_mutation_aliases_other_input', () =>
    sameOn(adds, (base) => {
      const x = base(4, 2)
      return [x.select(0, 0), x.select(0, 0)]
    }))
  it('test_input_mutation_aliases_other_input2', () =>
    sameOn(adds, (base) => {
      const x = base(2, 2)
      return [x.select(0, 0), x]
    }))
  it('test_input_mutation_aliases_and_output_alias', () =>
    sameOn(
      (a: Tensor, b: Tensor) => {
        a.add_(1)
        return b.view(b.shape)
      },
      (base) => {
        const x = base(2, 2)
        return [x.view(-1), x.view(-1)]
      },
    ))
  it('test_input_aliased_with_mutation_output_alias', () =>
    sameOn(
      (_: Tensor, b: Tensor, c: Tensor) => {
        c.mul_(2)
        return [b.add(1), c.view(-1)]
      },
      (base) => {
        const [x, y] = [base(2, 2), base(2, 2)]
        return [x.view(-1), y, x.view(-1)]
      },
    ))
  it('test_input_mutation_aliases_and_none_require_gradients', () => {
    for (const requiresGrad of [false, true])
      expect(
        differences(
          (a: Tensor, b: Tensor, c: Tensor) => {
            a.mul_(2)
            return [b.add(1), c.add(1)]
          },
          () => {
            const x = ramp(2, 2)
            const c = ones(2, 2).requiresGrad_(requiresGrad)
            return { leaves: [c], args: [x.view(-1), x.view(-1), c] }
          },
        ),
      ).toEqual([])
  })
  it('test_input_mutation_aliases_bases_out_of_order', () =>
    sameOn(
      (a: Tensor, b: Tensor, c: Tensor, d: Tensor) => {
        b.add_(1)
        d.unsqueeze_(0)
        return [a.add(c).add(d), b.view(-1)]
      },
      (base) => {
        const [x, y] = [base(2, 2), base(2, 2)]
        return [x.view(-1), y.view(-1), x.view(-1), y.view(-1)]
      },
    ))
  it('test_synthetic_base_base_attribute_is_none', () =>
    sameOn(adds, (base) => {
      const x = base(4, 4)
      return [x.select(0, 0).detach(), x.select(0, 1).detach()]
    }))
  it('test_input_mutation_alias_everything', () =>
    sameOn(
      (a: Tensor, b: Tensor, c: Tensor) => {
        c.mul_(2)
        b.t_()
        const tmp = a.add(c)
        const first = tmp.view(-1)
        return [first, b.t(), first.unsqueeze(0)]
      },
      (base) => {
        const [x, y] = [base(2, 2), base(2, 2)]
        return [x.view(-1), y, x.view(-1)]
      },
    ))
  it('test_dupe_arg', () =>
    sameOn(
      (x: Tensor, y: Tensor) => x.add(y),
      (base) => {
        const x = base(3, 3)
        return [x, x]
      },
    ))
  it('test_dupe_arg_returned_as_output', () =>
    sameOn(
      (a: Tensor, _: Tensor, again: Tensor) => {
        a.select(0, 0).add_(1)
        return again
      },
      (base) => {
        const a = base(2)
        return [a, base(2), a]
      },
    ))
})

describe('who wants gradients', () => {
  it('test_input_inplace_requires_grad_true', () => {
    const f = (a: Tensor, b: Tensor): readonly Tensor[] => {
      a.requiresGrad_(true)
      return [a.mul(3), b.mul(4)]
    }
    const make = (): Inputs => {
      const leaves = [ones(3, 3), ones(3, 3).requiresGrad_()]
      return { leaves, args: leaves }
    }
    expect(differences(f, make)).toEqual([])
  })
  it('test_no_grad_input_output', () => {
    for (const [p, q] of [
      [true, true],
      [true, false],
      [false, true],
      [false, false],
    ])
      expect(
        differences(
          (a: Tensor, b: Tensor) => [a.cos(), b.cos(), a.mul(b)],
          () => {
            const leaves = [ramp(5).requiresGrad_(p), ones(5).requiresGrad_(q)]
            return { leaves, args: leaves }
          },
        ),
      ).toEqual([])
  })
  it('test_inner_grad', () =>
    same(
      (x: Tensor) => torch.autograd.grad(x.exp(), x, { gradOutputs: ones(3) })[0],
      () => [ramp(3)],
      ['leaf', 'inner'],
    ))
  it('test_grad_context', () => {
    let backwards = 0
    const f = aotFunction((x: Tensor) => x.mul(2), {
      fwCompiler: interpreted,
      bwCompiler: (gm) => {
        backwards++
        return interpreted(gm)
      },
    })
    const x = ones(1).requiresGrad_()
    noGrad(() => f(x))
    const out = f(x)
    expect(backwards).toBe(0)
    out.sum().backward()
    expect(backwards).toBe(1)
  })
  it('test_output_dict', () => {
    same(
      (x: Tensor) => ({ a: x, b: x }),
      () => [ramp(3, 3)],
      ['plain', 'leaf', 'inner'],
    )
    same(
      (x: Tensor, y: Tensor) => ({ a: x, b: y.add(x) }),
      () => [ramp(3), ones(3)],
      ['plain', 'leaf', 'inner'],
    )
    for (const requiresGrad of [false, true])
      expect(
        differences(
          (x: Record<string, Tensor>) => Object.fromEntries(Object.entries(x).map(([k, v]) => [k, v.mul(2)])),
          () => {
            const [a, b] = [ramp(3), ones(3)].map((t) => t.requiresGrad_(requiresGrad)) as [Tensor, Tensor]
            return { leaves: [a, b], args: [{ a, b }] }
          },
        ),
      ).toEqual([])
  })
})
