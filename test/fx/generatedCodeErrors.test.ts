// Errors that come out of generated code: they say which node was running, where in the user's program it comes from, and in which module, before anything else.
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { originOf, symbolicTrace, wrap } from 'tensorfx/fx'
import type { GraphModule, Node } from 'tensorfx/fx'

const { tensor } = torch

const FX_CALL = "of the traced Module's generated forward function:"

/** The error of a call. */
function failure(gm: GraphModule, ...inputs: readonly unknown[]): Error {
  try {
    gm.call(...inputs)
  } catch (error) {
    return error as Error
  }
  return expect.fail('nothing was thrown')
}

class Weighted extends nn.Module {
  readonly W = new nn.Parameter(torch.randn([5]))
  override forward(x: Tensor): Tensor {
    return torch.dot(this.W, x)
  }
}
class Outer extends nn.Module {
  readonly inner = new Weighted()
  override forward(x: Tensor): Tensor {
    return this.inner.call(x.add(1))
  }
}

const failing = wrap(
  (x: Tensor): Tensor => {
    if (x.shape.length === 1) throw new RangeError('the user’s own error')
    return x
  },
  { name: 'test.generatedCodeErrors.failing' },
)

describe('an error in generated code', () => {
  it('names the node, the module path and the user’s line first, then the generated line, then what was wrong', () => {
    const { message } = failure(symbolicTrace(new Outer()), tensor([1, 2]))
    const lines = message.split('\n')
    expect(lines[0]).toMatch(/^While executing %dot : \[num_users=1\] = call_function\[target=torch\.dot\]\(.*\) in module 'inner'$/)
    expect(lines[1]).toMatch(/^ {2}from .*generatedCodeErrors\.test\.ts:\d+ in Weighted\.forward$/)
    expect(message).toContain('return torch.dot(this.W, x)')
    expect(message).toContain(`${FX_CALL}\n`)
    expect(lines.at(-1)).toContain('torch.dot: expected two vectors of the same length, got shapes [5] and [2].')
  })

  it('test_custom_traceback_raised_when_exception_source_is_graphmodule: shows the generated lines, the failing one marked', () => {
    const gm = symbolicTrace(new Weighted())
    const output = gm.graph.outputNode()
    output.args = [gm.graph.insertingBefore(output, () => gm.graph.callMethod('nope', [output.args[0] ?? null]))]
    gm.recompile()
    const { message } = failure(gm, torch.ones([5]))
    expect(message.split('\n')).toEqual([
      'While executing %nope : [num_users=1] = call_method[target=nope](args = (%dot,), kwargs = {})',
      `Call using an FX-traced Module, line 4 ${FX_CALL}`,
      '  let dot = torch.dot(w, x); x = null',
      '  const nope = dot.nope(); dot = null',
      '~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~ <--- HERE',
      '  return nope',
      '}',
      'dot.nope is not a function',
    ])
    expect(failure(gm, 5).message).toContain(`line 3 ${FX_CALL}`)
  })

  it('test_custom_traceback_not_raised_when_exception_source_is_submodule: does not show them for a layer that failed (difference: errors-explained)', () => {
    const { message } = failure(symbolicTrace(new nn.Sequential(new nn.Linear(3, 4))), torch.rand([5]))
    expect(message).toMatch(/^While executing %_0 : .* = call_module\[target=0\]/)
    expect(message).not.toContain(FX_CALL)
  })

  it('test_user_friendly_call_provenance_with_function: a function of the user that failed is named with the place that called it', () => {
    const gm = symbolicTrace((x: Tensor) => failing(x.relu()))
    const error = failure(gm, tensor([1]))
    expect(error).toBeInstanceOf(RangeError)
    const lines = error.message.split('\n')
    expect(lines[0]).toBe(
      'While executing %failing : [num_users=1] = call_function[target=test.generatedCodeErrors.failing](args = (%relu,), kwargs = {})',
    )
    expect(lines[1]).toMatch(/generatedCodeErrors\.test\.ts:\d+ in /)
    expect(lines.at(-1)).toBe('the user’s own error')
    expect(error.message).not.toContain(FX_CALL)
  })

  it('test_user_friendly_call_provenance_with_module: also inside a module, once, by the innermost graph', () => {
    class Calls extends nn.Module {
      override forward(x: Tensor): Tensor {
        return failing(x)
      }
    }
    const inner = symbolicTrace(new Calls())
    const outer = symbolicTrace((x: Tensor) => x.relu())
    outer.addSubmodule('inner', inner)
    const output = outer.graph.outputNode()
    output.args = [outer.graph.insertingBefore(output, () => outer.graph.callModule('inner', [output.args[0] ?? null]))]
    outer.recompile()
    const { message } = failure(outer, tensor([1]))
    expect(message.match(/While executing/g)).toHaveLength(1)
    expect(message).toMatch(/^While executing %failing/)
    expect(message).toContain('in Calls.forward')
  })

  it('stands in the stack as well, whose frames name the traced program (test_informative_co_filename)', () => {
    const gm = symbolicTrace(new Weighted())
    expect(gm.graph.sourceHint).toMatch(/generatedCodeErrors\.test\.ts:\d+ in Weighted\.forward$/)
    const { stack } = failure(gm, tensor([1]))
    expect(stack).toMatch(/tensorfx-generated\/generatedCodeErrors\.test\.ts_\d+\/Weighted_\d+\.js:3:/)
    expect(stack).toContain('While executing %dot')
    // A trace of a trace, and copies, come from the same place.
    for (const copy of [symbolicTrace(gm), gm.deepCopy()]) expect(copy.graph.sourceHint).toBe(gm.graph.sourceHint)
    const untold = symbolicTrace((x: Tensor) => x)
    expect(untold.graph.sourceHint).toBeNull()
  })

  it('is found as well where stacks show the user’s line in place of the generated one (node --enable-source-maps)', () => {
    let at = ''
    const mapped = wrap(
      (x: Tensor): Tensor => {
        if (x.shape.length === 1) {
          const error = new Error('mapped')
          error.stack = `Error: mapped\n    at GraphModule.forward (${at})\n    at GraphModule.forward (/somewhere/dist/fx/run/graphModule.js:1:1)\n    at f (/other.js:1:1)`
          throw error
        }
        return x
      },
      { name: 'test.generatedCodeErrors.mapped' },
    )
    const gm = symbolicTrace((x: Tensor) => mapped(x.relu()))
    const frame = originOf(gm.graph.findNodes({ op: 'call_function', target: mapped })[0] as Node)
    at = `${frame?.file}:${frame?.line}:${frame?.column}`
    expect(failure(gm, tensor([1])).message).toMatch(/^While executing %mapped [^]*line 3 of the traced Module's generated forward function/)
    at = `${frame?.file}:9999:1`
    expect(failure(gm, tensor([1])).message).toBe('mapped')
  })

  it('leaves what is thrown that is no Error as it is', () => {
    const throws = wrap(
      (x: Tensor): Tensor => {
        // oxlint-disable-next-line no-throw-literal -- what this is about
        if (x.shape.length === 1) throw 'a string'
        return x
      },
      { name: 'test.generatedCodeErrors.throws' },
    )
    let thrown: unknown
    try {
      symbolicTrace((x: Tensor) => throws(x)).call(tensor([1]))
    } catch (error) {
      thrown = error
    }
    expect(thrown).toBe('a string')
  })
})
