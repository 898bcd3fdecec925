// What reports say of a change: the words of the list, in recompileReasons, events, counters and checkGuards.
import { beforeEach, expect, it } from 'vitest'
import { compile, nn, noGrad, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { aotFunction, checkGuards, makeFx } from 'tensorfx/aot'
import { counters, onEvent } from 'tensorfx/debug'

beforeEach(() => counters.clear())

/** Calls a function before and after changes that aotFunction, checkGuards and compile are told about. */
function world(): { readonly f: (x: Tensor) => Tensor; readonly layer: nn.Linear; readonly drop: nn.Dropout } {
  torch.manualSeed(1)
  const [layer, drop] = [new nn.Linear(2, 2), new nn.Dropout(0.5)]
  return { f: (x) => drop(layer(x)), layer, drop }
}

const x = (): Tensor => torch.ones([1, 2])

it('aotFunction traces again when state has changed, and names what changed (difference: aot-traces-again)', () => {
  const { f, layer, drop } = world()
  let traces = 0
  const traced = aotFunction((t: Tensor) => (traces++, f(t)), {
    fwCompiler:
      (gm) =>
      (...inputs) =>
        gm.forward(...inputs) as unknown[],
  })
  const reasons: string[] = []
  const remove = onEvent((event) => void reasons.push(event.reason), { kinds: ['recompile'] })
  const calls: readonly (() => unknown)[] = [
    () => traced(x()),
    () => noGrad(() => traced(x())),
    () => traced(x()),
    () => (drop.eval(), traced(x())),
    () => (drop.train(), traced(x())),
    () => (drop.eval(), layer.requiresGrad_(false), traced(x())),
    () => traced(torch.ones([3, 2])),
    () => ((layer.weight = new nn.Parameter(torch.ones([2, 2]))), traced(torch.ones([3, 2]))),
  ]
  for (const call of calls) call()
  remove()
  expect(reasons).toEqual([
    'the grad mode was on, is now off',
    "module 'Dropout' is in evaluation mode now",
    'a tensor from outside, of shape [2, 2], no longer requires grad',
    'tensor 0 of the arguments had shape [1, 2], now has [3, 2]',
    "module 'Linear' has another value of 'weight' now",
  ])
  expect(traces).toBe(6)
  expect(counters.recompiles['the grad mode was on, is now off']).toBe(1)
})

it('compile names the state by which it chose other graphs', () => {
  const f = compile((t: Tensor) => t.mul(2), { backend: 'eager', dynamic: false })
  const square = torch.ones([2, 2])
  f(square)
  noGrad(() => f(square))
  square.requiresGrad_()
  noGrad(() => f(square))
  noGrad(() => f(square.t().requiresGrad_()))
  const w = torch.ones([2])
  const outside = compile((t: Tensor) => t.mul(w), { backend: 'eager' })
  outside(torch.ones([2]))
  w.requiresGrad_()
  outside(torch.ones([2]))
  expect(f.recompileReasons()).toEqual([
    'the grad mode was on, is now off',
    'argument 0 now requires grad',
    'argument 0 had strides [2, 1], now has [1, 2]',
  ])
  expect(outside.recompileReasons()).toEqual(['torch.mul was called without gradients, is now called with'])
})

it('checkGuards says what has changed since a trace, and refuses graphs of which that is not known', () => {
  const { f, layer, drop } = world()
  const gm = makeFx(f)(x())
  expect(checkGuards(gm, [x()])).toBeNull()
  expect(checkGuards(gm, [torch.ones([2, 2])])).toBe('tensor 0 of the arguments had shape [1, 2], now has [2, 2]')
  expect(checkGuards(gm, [x(), 1])).toBe('the arguments have other values or another structure')
  expect(checkGuards(gm, [])).toBe('the arguments have other values or another structure')
  expect(noGrad(() => checkGuards(gm, [x()]))).toBe('the grad mode was on, is now off')
  const hook = layer.registerForwardHook(() => undefined)
  expect(checkGuards(gm, [x()])).toBe("module 'Linear' has other forward hooks now")
  hook.remove()
  expect(checkGuards(gm, [x()])).toBeNull()
  drop.eval()
  expect(checkGuards(gm, [x()])).toBe("module 'Dropout' is in evaluation mode now")
  expect(() => checkGuards(gm.deepCopy(), [x()])).toThrow("checkGuards: 'f' is no graph that makeFx returned")
})
