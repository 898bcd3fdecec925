// Every way in which the data of a weight changes, for tests that no copy of it is stale, and what such copies take.
import { compile, nn, optim, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { expect } from 'vitest'
import { memoryOwners } from '../../src/kernels/memory/owners.ts'

/** A weight of `TO` by `FROM` elements is large enough for a record of its own. */
export const FROM = 256
export const TO = 300

/** Bytes of copies of weights, by what they belong to. */
export const copiedBytes = (use: string): number => memoryOwners().reduce((sum, { operator, bytes }) => (operator === use ? sum + bytes : sum), 0)

/** Changes of a contiguous float32 weight of any shape, by name. */
export const changesOfWeights: Readonly<Record<string, (w: Tensor) => void>> = {
  copy_: (w) => w.copy_(torch.randn(w.shape)),
  mul_: (w) => w.mul_(1.5),
  'a write to a part': (w) => w.narrow(0, 3, 1).add_(2),
  'an alias': (w) => w.detach().sub_(0.5),
  'another view of the memory': (w) => w.view([-1]).narrow(0, 7, 9).sub_(3),
  'random numbers': (w) => w.normal_(),
  loadStateDict: (w) => {
    const layer = new nn.Linear(1, 1, { bias: false })
    layer.weight = new nn.Parameter(w)
    expect(layer.weight.storage?.home).toBe(w.storage?.home)
    layer.loadStateDict({ weight: torch.randn(w.shape) })
  },
  'a step of an optimizer': (w) => {
    const parameter = new nn.Parameter(w)
    parameter.grad = torch.ones(w.shape)
    new optim.SGD([parameter], { lr: 0.3 }).step()
  },
  'a compiled function that writes in place': (w) => compile((y: Tensor) => y.mul_(-1))(w),
  'a compiled function at its second call, which skips the replay': (w) => {
    const turn = compile((y: Tensor) => y.mul_(-1.25), { skipReplay: true })
    for (let i = 0; i < 3; i++) turn(w)
  },
  'a write without a new version': (w) => {
    const { version } = w.realize()
    w.add_(2)
    w.realize().version = version
  },
  bytes: (w) =>
    w.realize().writeBytes(
      w
        .realize()
        .readBytes(0, 64)
        .map((byte, i) => (i % 4 === 3 ? byte ^ 128 : byte)),
    ),
  'a move to other memory': (w) => {
    w.realize().moveTo(torch.randn(w.shape).realize())
  },
}
