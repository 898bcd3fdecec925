// Arguments and results that share memory, and what gets a history from a write: through aotFunction as in eager mode.
import { describe, expect, test } from 'vitest'
import { noGrad, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { third } from '../helpers/rotation.ts'
import { differences } from './asInEager.ts'

const windows: Readonly<Record<string, (base: Tensor) => Tensor>> = {
  'the tensor': (base) => base,
  'a view': (base) => base.view([2, 2]),
  'a detached tensor': (base) => base.detach(),
  'a view of a detached tensor': (base) => base.detach().view([2, 2]),
  'a view made inside noGrad': (base) => noGrad(() => base.view([2, 2])),
}

const writes: Readonly<Record<string, (x: Tensor, w: Tensor) => unknown>> = {
  'a write': (x, w) => x.mul_(w.sum()),
  'a write inside noGrad': (x, w) => noGrad(() => x.mul_(w.sum())),
}

describe.each(Object.keys(windows))('%s and', (first) => {
  test.each(third(Object.keys(windows).flatMap((second) => Object.keys(writes).map((write) => [second, write] as const))))(
    '%s, after %s to the first',
    (second, write) => {
      const fn = (w: Tensor, x: Tensor, y: Tensor): unknown => {
        writes[write]?.(x, w)
        return [y.mul(3), x.detach().add(1)]
      }
      for (const hasHistory of [false, true])
        expect(
          differences(fn, () => {
            const w = torch.tensor([1, 2, 3, 4]).requiresGrad_()
            const base = hasHistory ? w.mul(2) : torch.ones([4])
            return { leaves: [w], args: [w, windows[first]?.(base) ?? base, windows[second]?.(base) ?? base] }
          }),
          `with history: ${hasHistory}`,
        ).toEqual([])
    },
  )
})

test('a result that is detached, and was written to, shares memory with its argument and has its own history', () => {
  const fn = (w: Tensor, x: Tensor): unknown => [x.detach().mul_(w), x.view([2, 2])]
  const made = (): { leaves: Tensor[]; args: Tensor[] } => {
    const w = torch.tensor([1, 2, 3, 4]).requiresGrad_()
    return { leaves: [w], args: [w, torch.ones([4])] }
  }
  expect(differences(fn, made)).toEqual([])
})
