// detectAnomaly around compiled functions: it names the operator and the line of the forward, as in eager mode.
import { describe, expect, it } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { detectAnomaly, setDetectAnomaly } from 'tensorfx/debug'

const rooted = (x: Tensor): Tensor => {
  const root = torch.sqrt(x) // the line of the root
  return root.mul(torch.tensor([1, 0, 1])).sum()
}
const leaf = (): Tensor => torch.tensor([4, 0, 9], { requiresGrad: true })

const PLACE = /Function 'SqrtBackward0' returned nan values in its 0th output\. The forward call was:\n[^]*anomaly\.test\.ts[^]*the line of the root/

function messageOf(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    expect(error).toMatchObject({ name: 'AutogradError' })
    return error instanceof Error ? error.message : ''
  }
  return 'no error'
}

describe.each(['inductor', 'eager', 'aot_eager'])('backend %s', (backend) => {
  it('a backward outside of the compiled function', () => {
    const fast = compile(rooted, { backend })
    expect(messageOf(() => detectAnomaly(() => fast(leaf()).backward()))).toMatch(PLACE)
    expect(messageOf(() => detectAnomaly(() => fast(leaf()).backward()))).toMatch(/^backward: Function/)
    const x = leaf()
    fast(x).backward()
    expect(x.grad?.toArray()).toEqual([0.25, NaN, expect.closeTo(1 / 6)])
  })

  it('a forward that ran before the mode was turned on', () => {
    const loss = compile(rooted, { backend })(leaf())
    expect(messageOf(() => detectAnomaly(() => loss.backward()))).toMatch(PLACE)
  })

  it('a backward of some of the results', () => {
    const two = compile((x: Tensor) => [rooted(x), x.mul(2).sum()] as const, { backend })
    expect(messageOf(() => detectAnomaly(() => two(leaf())[0].backward()))).toMatch(PLACE)
    const [, other] = two(leaf())
    expect(() => detectAnomaly(() => other.backward())).not.toThrow()
  })

  it('a backward inside of the compiled function, which compiles as before afterwards', () => {
    const step = compile(
      (x: Tensor) => {
        const loss = rooted(x)
        loss.backward()
        return loss
      },
      { backend, fullgraph: true },
    )
    expect(messageOf(() => detectAnomaly(() => step(leaf())))).toMatch(PLACE)
    expect(messageOf(() => detectAnomaly(() => step(leaf())))).toMatch(PLACE)
    const x = leaf()
    expect(step(x).item()).toBe(5)
    expect(x.grad?.toArray()).toEqual([0.25, NaN, expect.closeTo(1 / 6)])
    expect(step.graphs()).toHaveLength(1)
    // Healthy data passes in the mode, too.
    const good = torch.tensor([4, 1, 9], { requiresGrad: true })
    detectAnomaly(() => step(good))
    expect(good.grad?.toArray()).toEqual([0.25, 0, expect.closeTo(1 / 6)])
  })
})

it('says so if only the compiled code gives NaN', () => {
  // The backward of this backend is wrong where its input is 0.
  const wrong = compile((x: Tensor) => x.mul(x).sum(), {
    backend: (gm) => {
      const isBackward = gm.className.endsWith('_backward')
      return (...inputs: Tensor[]) => {
        const outputs = gm.forward(...inputs) as Tensor[]
        return isBackward ? outputs.map((gradient) => gradient.div(gradient)) : outputs
      }
    },
  })
  const x = leaf()
  expect(messageOf(() => detectAnomaly(() => wrong(x).backward()))).toBe(
    'backward: the backward of a compiled function returned nan values in its 0th output. Only the compiled code does: its graph, run on eager kernels, returns none.',
  )
})

it('notes no places when the mode is off', () => {
  setDetectAnomaly(true)
  setDetectAnomaly(false)
  const loss = rooted(leaf())
  expect(messageOf(() => detectAnomaly(() => loss.backward()))).toContain('was computed without anomaly mode')
})
