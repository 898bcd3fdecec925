// A planted change of each kind of state between two calls of a function. Each plan makes its own world, calls the function before and after the change and, where it can, after it was
// undone, and tells what came out.
import { Tensor, nn, noGrad, torch } from 'tensorfx'
import { setDetectAnomaly } from 'tensorfx/autograd'
import { allowInGraph } from 'tensorfx/compile'
import { symbolicTrace } from 'tensorfx/fx'
import { devices } from '../../src/dispatch/index.ts'
import { deviceCompiler } from '../../src/inductor/pipeline.ts'
import { readBlock } from '../../src/kernels/index.ts'
import { Storage } from '../../src/tensor/index.ts'
import type { Use } from './users.ts'

/** All that a program can see of a result. */
export function seen(value: unknown): unknown {
  if (!(value instanceof torch.Tensor)) return Array.isArray(value) ? value.map(seen) : value
  return { dtype: value.dtype, shape: [...value.shape], requiresGrad: value.requiresGrad, isLeaf: value.isLeaf, data: value.toArray() }
}

/** What `run` returns, or the name of the error that it throws. */
export function outcome(run: () => unknown): unknown {
  try {
    return seen(run())
  } catch (error) {
    return error instanceof Error ? error.name : 'not an error'
  }
}

/** The result, after a backward if there can be one, with the gradient of `leaf`. */
function withGradient(result: Tensor, leaf: Tensor): unknown[] {
  leaf.grad = null
  const before = seen(result)
  if (result.requiresGrad) result.sum().backward()
  const grad: Tensor | null = leaf.grad
  return [before, seen(grad)]
}

const two = (): Tensor => torch.tensor([1, 2])

function model(): nn.Sequential {
  torch.manualSeed(3)
  return new nn.Sequential(new nn.Linear(2, 2), new nn.BatchNorm1d(2), new nn.Dropout(0.5))
}

const part = (m: nn.Sequential, i: number): nn.Module => [...m.children()][i] ?? m

/** A tensor that says that it is on a device. */
function onSomeDevice(): Tensor {
  const { block, nbytes } = two().realize()
  const bytes = (): Uint8Array<ArrayBuffer> => readBlock(block, 0, nbytes).slice()
  const onDevice = { device: 'webgpu' as const, read: bytes, readLater: async () => Promise.resolve(bytes()), free: () => undefined }
  return new Tensor([2], 'float32', Storage.late(nbytes, { onDevice, isHere: true, take: () => block, arrive: async () => Promise.resolve() }))
}

/** Runs `fn` as if a device were loaded, whose tensors the kernels take. */
function withSomeDevice<T>(fn: () => T): T {
  const [outer, compiler] = [devices.operators, deviceCompiler.compile]
  const never = (): never => {
    throw new Error('there is no device')
  }
  devices.operators = {
    ...{ begins: () => false, crosses: () => false, run: () => null, forGradients: (_grads, derivative) => derivative() },
    ...{ within: never, move: never, allocate: never, copy: never },
  }
  deviceCompiler.compile = null
  try {
    return fn()
  } finally {
    devices.operators = outer
    deviceCompiler.compile = compiler
  }
}

/** Runs `call` with a change in between, and with it undone. */
function around(call: () => unknown, change: () => void, undo: () => void = () => undefined): unknown[] {
  const results = [outcome(call)]
  change()
  try {
    results.push(outcome(call), outcome(call))
  } finally {
    undo()
  }
  results.push(outcome(call))
  return results
}

const seeded = (call: () => unknown) => (): unknown => {
  torch.manualSeed(7)
  return call()
}

class Doubled extends torch.autograd.Function {
  static override forward(_ctx: unknown, x: Tensor): Tensor {
    return x.mul(1)
  }
  static override backward(_ctx: unknown, grad: Tensor): Tensor {
    return grad.mul(2)
  }
}

const lookingForNaN = (use: Use): unknown => {
  const w = torch.tensor([0]).requiresGrad_()
  const f = use((x: Tensor) => torch.autograd.grad(w.sqrt().mul(x).mul(w).sum(), w)[0] ?? x)
  return around(
    () => f(torch.tensor([0])),
    () => setDetectAnomaly(true),
    () => setDetectAnomaly(false),
  )
}

const writesAcross = (use: Use): unknown => {
  const w = two()
  const f = use((x: Tensor) => {
    w.add_(1)
    return x.mul(2)
  })
  return [two(), w, w.view(2), two()].map((x) => [seen(f(x)), seen(w)])
}

const writesToShared = (use: Use): unknown => {
  const f = use((x: Tensor, y: Tensor) => {
    x.add_(1)
    return y.mul(2)
  })
  const same = two()
  return [
    [two(), two()],
    [same, same],
    [same, same.view(2)],
    [two(), two()],
  ].map(([x, y]) => [seen(f(x ?? same, y ?? same)), seen(x)])
}

const historiesOfShared = (use: Use): unknown => {
  const f = use((w: Tensor, y: Tensor, x: Tensor) => {
    y.mul_(w)
    return x.mul(3)
  })
  const makes: readonly ((base: Tensor) => Tensor)[] = [
    (base) => base.view([2]),
    (base) => base.detach(),
    () => torch.ones([2]),
    (base) => noGrad(() => base.view([2])),
    (base) => base.detach().view([2]),
    (base) => base,
    (base) => base.view([2]),
  ]
  return makes.map((make) => {
    const [w, x] = [two().requiresGrad_(), torch.ones([2])]
    const y = make(x)
    return outcome(() => [withGradient(f(w, y, x), w), seen(y), seen(x)])
  })
}

/** What a graph of makeFx cannot do: look for NaN in a backward that is part of it, see through one tensor what it writes to another one, and give arguments a history. */
export const beyondMakeFx: readonly ((use: Use) => unknown)[] = [lookingForNaN, writesAcross, writesToShared, historiesOfShared]

/** By kind: scenarios that make a function with `use`, and return what they saw. */
export const plans: Readonly<Record<string, readonly ((use: Use) => unknown)[]>> = {
  'the grad mode': [
    (use) => {
      const w = two().requiresGrad_()
      const f = use((x: Tensor) => x.mul(w).sin())
      return [noGrad(() => seen(f(two()))), withGradient(f(two()), w), noGrad(() => seen(f(two()))), withGradient(f(two()), w)]
    },
  ],
  'the default dtype': [
    (use) => {
      const f = use((x: Tensor) => x.div(4).add(torch.ones([2])))
      const x = torch.tensor([1, 2], { dtype: 'int32' })
      return around(
        () => f(x),
        () => torch.setDefaultDtype('float64'),
        () => torch.setDefaultDtype('float32'),
      )
    },
  ],
  'the accuracy or the emitter': [
    (use) => {
      const f = use((x: Tensor) =>
        x
          .exp()
          .matmul(x.t())
          .add(torch.areDeterministicAlgorithmsEnabled() ? 1 : 0),
      )
      const x = torch.linspace(-3, 3, 60).view(6, 10)
      return around(
        () => f(x),
        () => torch.useDeterministicAlgorithms(true),
        () => torch.useDeterministicAlgorithms(false),
      )
    },
  ],
  'anomaly mode': [lookingForNaN],
  autocast: [
    (use) => {
      const f = use((x: Tensor) => x.matmul(x).exp())
      const x = torch.linspace(-1, 1, 9).view(3, 3)
      const seen = (y: Tensor): unknown => [y.dtype, y.toArray()]
      return [seen(f(x)), seen(torch.autocast({}, () => f(x))), seen(torch.autocast({ dtype: 'float16' }, () => f(x))), seen(f(x))]
    },
  ],
  'whether the operator is recorded for gradients': [
    (use) => {
      const w = two().requiresGrad_()
      const f = use((x: Tensor, records: boolean) => x.mul(w).add(records ? w.mul(3) : noGrad(() => w.mul(3))))
      return [true, false, true].map((records) => withGradient(f(two(), records), w))
    },
  ],
  'the state of the random generator': [
    (use) => {
      const f = use((x: Tensor) => x.add(torch.rand([2])))
      torch.manualSeed(1)
      return around(
        () => f(two()),
        () => torch.manualSeed(5),
        () => torch.manualSeed(1),
      )
    },
  ],
  'the dtype': [
    (use) => {
      const f = use((x: Tensor) => x.mul(2).sum())
      return (['float32', 'float64', 'int32', 'float32'] as const).map((dtype) => seen(f(torch.tensor([1, 2], { dtype }))))
    },
    (use) => {
      torch.manualSeed(1)
      const layer = new nn.Linear(2, 1)
      const f = use((x: Tensor) => layer(x.to(layer.weight.dtype)))
      return around(
        () => f(torch.ones([1, 2])),
        () => layer.to('float64'),
        () => layer.to('float32'),
      )
    },
  ],
  'whether it requires grad': [
    (use) => {
      const w = two()
      const f = use((x: Tensor) => x.mul(w))
      return around(
        () => withGradient(f(two()), w),
        () => w.requiresGrad_(),
        () => w.requiresGrad_(false),
      )
    },
    (use) => {
      const f = use((x: Tensor) => x.mul(2))
      const x = two()
      return around(
        () => withGradient(f(x), x),
        () => x.requiresGrad_(),
        () => x.requiresGrad_(false),
      )
    },
    (use) => {
      torch.manualSeed(1)
      const layer = new nn.Linear(2, 2)
      const f = use((x: Tensor) => layer(x))
      return around(
        () => withGradient(f(torch.ones([1, 2])), layer.bias ?? layer.weight).at(1),
        () => layer.requiresGrad_(false),
        () => layer.requiresGrad_(true),
      )
    },
  ],
  'the shape': [
    (use) => {
      const f = use((x: Tensor) => x.sum(0).mul(x.shape[0] ?? 0))
      return [[2], [3], [2, 2], [2]].map((shape) => seen(f(torch.ones(shape))))
    },
  ],
  'the strides': [
    (use) => {
      const f = use((x: Tensor) => x.mul(2).reshape([-1]))
      const x = torch.arange(4, { dtype: 'float32' }).reshape([2, 2])
      return [x, x.t(), x].map((given) => seen(f(given)))
    },
  ],
  // Here are no devices: the tensor says that it is on one until a kernel takes its memory. test/webgpu/device/captured.device.ts has devices.
  'the device': [
    (use) => {
      const f = use((x: Tensor) => x.mul(2))
      return withSomeDevice(() => [two(), onSomeDevice(), two()].map((given) => seen(f(given))))
    },
  ],
  'whether it is a leaf': [
    (use) => {
      const f = use((x: Tensor) => {
        noGrad(() => x.add_(1))
        return x.mul(2)
      })
      const x = two().requiresGrad_()
      return [x.mul(3), x, x.mul(3)].map((given) => [seen(f(given)), seen(x)])
    },
  ],
  'the memory of a tensor from outside': [
    (use) => {
      const layer = new nn.Linear(1, 1, false)
      noGrad(() => layer.weight.fill_(2))
      const f = use((x: Tensor) => layer(x))
      return around(
        () => f(torch.ones([1, 1])),
        () => layer.loadStateDict({ weight: torch.full([1, 1], 5) }),
        () => noGrad(() => layer.weight.copy_(torch.full([1, 1], 3))),
      )
    },
  ],
  'what a write to it gives a history': [
    (use) => {
      const f = use((w: Tensor, y: Tensor) => {
        y.mul_(w)
        return w.mul(2)
      })
      const makes: readonly ((base: Tensor) => Tensor)[] = [
        (base) => base,
        (base) => base.view([2]),
        (base) => base.detach(),
        (base) => noGrad(() => base.view([2])),
        (base) => base.detach().view([2]),
        (base) => base.view([2]),
      ]
      return makes.map((make) => {
        const [w, base] = [two().requiresGrad_(), torch.ones([2])]
        const y = make(base)
        return [outcome(() => f(w, y)), seen(y), seen(base)]
      })
    },
  ],
  'which tensors are the same one, or share memory': [
    writesToShared,
    historiesOfShared,
    writesAcross,
    (use) => {
      const f = use((x: Tensor, y: Tensor) => x.mul(y))
      const w = two().requiresGrad_()
      return [
        [w, w],
        [w, two()],
        [two(), w],
        [w, w],
      ].map(([x, y]) => withGradient(f(x ?? w, y ?? w), w))
    },
  ],
  'the structure of the arguments': [
    (use) => {
      const f = use((o: { a?: Tensor; b?: Tensor }) => (o.a === undefined ? (o.b ?? two()).neg() : o.a))
      return [{ a: two() }, { b: two() }, { a: two(), b: two() }, { a: two() }].map((o) => seen(f(o)))
    },
  ],
  'the value, if it is not a tensor': [
    (use) => {
      const f = use((x: Tensor, n: unknown) => (typeof n === 'number' ? x.div(x.mul(n)) : x.add(String(n).length)))
      return [2, 0, -0, '2', 'ab"|', true, null, undefined, 2n, Number.NaN, 2].map((n) => String(JSON.stringify(seen(f(two(), n)))))
    },
  ],
  'the mode: train or eval': [
    (use) => {
      const m = model()
      const f = use((x: Tensor) => m(x))
      return around(
        seeded(() =>
          f(
            torch.tensor([
              [1, 2],
              [4, 3],
            ]),
          ),
        ),
        () => m.eval(),
        () => m.train(),
      )
    },
    (use) => {
      const m = model().eval()
      const f = use(m)
      return around(
        seeded(() =>
          f(
            torch.tensor([
              [1, 2],
              [4, 3],
            ]),
          ),
        ),
        () => part(m, 2).train(),
        () => part(m, 2).eval(),
      )
    },
    (use) => {
      const m = model().eval()
      const f = use((module: nn.Sequential, x: Tensor) => module(x))
      return around(
        seeded(() =>
          f(
            m,
            torch.tensor([
              [1, 2],
              [4, 3],
            ]),
          ),
        ),
        () => part(m, 1).train(),
        () => part(m, 1).eval(),
      )
    },
  ],
  'its parameters, buffers, children and other properties': [
    (use) => {
      const layer = new nn.Linear(2, 2, false)
      const { weight } = layer
      noGrad(() => weight.fill_(1))
      const f = use(layer)
      return around(
        () => withGradient(f(torch.ones([1, 2])), layer.weight),
        () => (layer.weight = new nn.Parameter(torch.full([2, 2], 3))),
        () => (layer.weight = weight),
      )
    },
    (use) => {
      const m = new nn.Sequential(new nn.Identity())
      const f = use((x: Tensor) => m(x))
      return around(
        () => f(two()),
        () => m.append(new nn.ELU()),
        () => Object.assign(m, { 0: new nn.Tanh() }),
      )
    },
    (use) => {
      const drop = new nn.Dropout(0)
      const f = use((x: Tensor) => drop(x))
      return around(
        seeded(() => f(torch.ones([8]))),
        () => Object.assign(drop, { p: 0.5 }),
        () => Object.assign(drop, { p: 0.9 }),
      )
    },
    (use) => {
      const norm = new nn.BatchNorm1d(2)
      const f = use(norm)
      return around(
        () => [
          f(
            torch.tensor([
              [1, 2],
              [4, 3],
            ]),
          ),
          norm.runningMean,
        ],
        () => (norm.momentum = 0.5),
        () => norm.registerBuffer('runningMean', torch.zeros([2])),
      )
    },
  ],
  'its forward hooks': [
    (use) => {
      torch.manualSeed(1)
      const layer = new nn.Linear(2, 2)
      const f = use((x: Tensor) => layer(x).sum())
      const x = torch.ones([1, 2])
      const results = [seen(f(x))]
      const post = layer.registerForwardHook((_module, _args, output) => (output as Tensor).mul(10))
      results.push(seen(f(x)), seen(f(x)))
      const pre = layer.registerForwardPreHook((_module, [input]) => [(input as Tensor).mul(3)])
      results.push(seen(f(x)))
      post.remove()
      results.push(seen(f(x)))
      pre.remove()
      return [...results, seen(f(x))]
    },
  ],
  'its code, if it is a GraphModule': [
    (use) => {
      const gm = symbolicTrace((x: Tensor) => torch.sin(x))
      const f = use((x: Tensor) => gm(x) as Tensor)
      const replace = (name: 'cos' | 'sin') => (): void => {
        for (const node of gm.graph.findNodes({ op: 'call_function', target: name === 'cos' ? torch.sin : torch.cos })) node.target = torch[name]
        gm.recompile()
      }
      return around(() => f(two()), replace('cos'), replace('sin'))
    },
  ],
  'the operators and Functions on the tape': [
    (use) => {
      const w = two().requiresGrad_()
      const f = use((x: Tensor) => Doubled.apply(x.mul(w)).sin())
      return around(
        () => f(two()),
        () => allowInGraph(Doubled),
      )
    },
  ],
  'what a backward has freed': [
    (use) => {
      const w = two().requiresGrad_()
      const f = use((x: Tensor, frees: boolean) => {
        const y = x.mul(w).sin()
        return frees ? [y, torch.autograd.grad(y.sum(), w)[0] ?? x] : [y, x.mul(1)]
      })
      return [false, true, false].map((frees) => f(two(), frees).map(seen))
    },
  ],
}
