// Whole reports of small trainings with one fault each: what is found, in which words, and the script that replays it.
// After a change: npx vitest run test/debug/flight/reports.test.ts -u, and read the difference.
import { afterEach, beforeEach, expect, it } from 'vitest'
import { compile, nn, optim, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import type { CompileOptions } from 'tensorfx/compile'
import { MemoryFileStore, TrainingError, fileStore, flightRecorder, setFileStore, setLogSink } from 'tensorfx/debug'
import type { FlightRecorder, FlightRecorderOptions, FlightReport } from 'tensorfx/debug'
import { runHere } from '../inProcess.ts'

const t = torch.tensor
const usual = fileStore()
let store = new MemoryFileStore()
beforeEach(() => {
  store = new MemoryFileStore()
  setFileStore(store)
})
afterEach(() => {
  setFileStore(usual)
  setLogSink(null)
})

class Scale extends nn.Module {
  weight = new nn.Parameter(t([1, 2]))
  override forward(x: Tensor): Tensor {
    return x.mul(this.weight)
  }
}
const asTensor = (parameter: unknown): Tensor => parameter as Tensor
const write = (fn: () => unknown): void => void torch.noGrad(fn)

/** Without the parts that depend on where and when. */
const plain = (text: string): string =>
  text
    .replaceAll(/File ".*\/(\w+\.test\.ts)", line \d+/g, 'File "$1", line N')
    .replaceAll(/(recorded|Written) by tensorfx .*/gi, '$1 by tensorfx')
    .replaceAll(/__compiled_fn_\d+/g, '__compiled_fn_N')
    .replaceAll(/^ {2}written: .*\n/gm, '')
    // A script names the package by its path where it is not installed.
    .replaceAll(/(?<= from )'file:.*\/(index|debug)\.js'/g, (_, entry: string) => (entry === 'index' ? "'tensorfx'" : `'tensorfx/${entry}'`))

/** A report as text: what it says, what it holds, and its script. */
function shown(report: FlightReport): readonly string[] {
  const { script, ...fields } = report
  const data = JSON.stringify(fields, (key, value: unknown) => {
    if (key === 'stack') return Array.isArray(value) ? value.length : value
    return typeof value === 'number' && !Number.isFinite(value) ? String(value) : value
  })
  return [plain(String(report)), plain(data).replaceAll(/,"(trigger|origin|compiled|losses|file|notes)"/g, '\n"$1"'), plain(script ?? 'no script')]
}

/** Runs steps until one goes wrong, and compares what is reported, and what its script says, with the file of that name. */
async function expectReport(name: string, options: FlightRecorderOptions, run: (recorder: FlightRecorder) => void): Promise<void> {
  using recorder = flightRecorder({ dir: 'recorded', ...options })
  try {
    run(recorder)
  } catch (error) {
    if (!(error instanceof TrainingError)) throw error
    expect(error.message).toBe(String(error.report))
    expect(error.report).toBe(recorder.report)
  }
  const { report } = recorder
  if (report === null) throw new Error('nothing was reported')
  const parts = [...shown(report), `kept: ${recorder.recordedSteps.join(', ')}; files: ${[...store.files.keys()].join(', ')}`]
  if (report.file !== null) {
    const { error, output } = await runHere(store, report.file)
    parts.push(plain([output, error === null ? '' : `${error.name}: ${error.message}`].filter(Boolean).join('\n')))
    store.files.delete(report.file)
  }
  await expect(`${parts.join('\n---\n')}\n`).toMatchFileSnapshot(`../../goldens/flight/${name}.txt`)
}

/** Steps on these batches, one after the other. */
const steps =
  (fn: (...inputs: Tensor[]) => unknown, ...batches: readonly (readonly Tensor[])[]) =>
  (recorder: FlightRecorder): void => {
    for (const batch of batches) recorder.step(fn, ...batch)
  }

const model = (): { weight: Tensor; model: Scale } => {
  const made = new Scale()
  return { weight: asTensor(made.weight), model: made }
}

it('an operator of the forward', async () => {
  const { model: net, weight } = model()
  await expectReport(
    'forward',
    { model: net },
    steps((x) => weight.mul(x).log().sum(), [t([3, 4])], [t([1, -1])]),
  )
})

it('an operator of the backward', async () => {
  const { model: net, weight } = model()
  const step = (x: Tensor): unknown => {
    const loss = weight.mul(x).sqrt().sum()
    loss.backward()
    return { loss }
  }
  await expectReport('backward', { model: net, steps: 2 }, steps(step, [t([2, 2])], [t([3, 4])], [t([1, 0])]))
})

it('a sum of gradients', async () => {
  const { model: net, weight } = model()
  const step = (x: Tensor): unknown => {
    const small = weight.mul(x)
    const loss = small.mul(2e38).sub(small.mul(-2e38)).sum()
    loss.backward()
    return [loss]
  }
  await expectReport('sumOfGradients', { model: net, check: ['gradients'] }, steps(step, [t([0, 0])]))
})

it('an update that the program writes itself', async () => {
  const { model: net, weight } = model()
  const step = (x: Tensor, rate: Tensor): unknown => {
    weight.grad = null
    const loss = weight.mul(x).sum()
    loss.backward()
    torch.noGrad(() => weight.sub_(asTensor(weight.grad).div(rate)))
    return loss
  }
  await expectReport('update', { model: net }, steps(step, [t([1, 2]), t(4)], [t([0, 2]), t(0)]))
})

it('an optimizer, of a model that is not named', async () => {
  const { weight } = model()
  const optimizer = new optim.SGD([weight], { lr: 1e-38, momentum: 0.5 })
  const step = (x: Tensor): unknown => {
    optimizer.zeroGrad()
    const loss = weight.mul(x).sum()
    loss.backward(t(3e38))
    optimizer.step()
    return loss
  }
  await expectReport('optimizer', { optimizer, check: ['weights'] }, steps(step, [t([1, 1])], [t([1, 1])]))
})

it("an optimizer's state, that of the step and that from before", async () => {
  const { model: net, weight } = model()
  const optimizer = new optim.Adam([weight], { lr: 0.5 })
  const step = (x: Tensor): unknown => {
    optimizer.zeroGrad()
    const loss = weight.mul(x).sum()
    loss.backward()
    optimizer.step()
    return loss
  }
  await expectReport('optimizerState', { model: net, optimizer }, steps(step, [t([1, 1])], [t([1, 1e30])]))
  await expectReport('optimizerStateBefore', { model: net, optimizer }, (recorder) => {
    const [state] = optimizer.state.values()
    if (state === undefined) throw new Error('no state')
    write(() => asTensor(state['expAvgSq']).fill_(1))
    recorder.step(step, t([1, 1]))
    write(() => asTensor(state['expAvg']).narrow(0, 0, 1).fill_(NaN))
    recorder.step(step, t([1, 1]))
  })
})

it('an input', async () => {
  const { model: net, weight } = model()
  await expectReport(
    'input',
    { model: net },
    steps((x, y) => weight.mul(x).sub(y).sum(), [t([3, 4]), t(1)], [t([1, 2]), t(-Infinity)]),
  )
})

it('a parameter that was bad from the beginning, and noticed later', async () => {
  const { model: net, weight } = model()
  write(() => weight.select(0, 1).fill_(NaN))
  const step = (at: Tensor): unknown => weight.narrow(0, Number(at.item()), 1).sum()
  await expectReport('badBefore', { model: [net, new Scale()] }, steps(step, [t(0)], [t(0)], [t(1)]))
})

it('a buffer that the program spoils between two steps', async () => {
  const net = new nn.Identity()
  const buffer = t([[1, 2]])
  net.registerBuffer('total', buffer)
  await expectReport('badSince', { model: net }, (recorder) => {
    const step = (x: Tensor, at: Tensor): unknown => x.mul(buffer.narrow(1, 0, Number(at.item()))).sum()
    recorder.step(step, t(1), t(1))
    recorder.step(step, t(1), t(1))
    write(() => buffer.narrow(1, 1, 1).fill_(-Infinity))
    recorder.step(step, t(1), t(1))
    recorder.step(step, t(1), t(2))
  })
})

it('a loss that jumps', async () => {
  const { model: net, weight } = model()
  const other = t([1], { requiresGrad: true })
  const optimizer = new optim.SGD([weight, other], { lr: 0.0625 })
  const step = (x: Tensor, y: Tensor): unknown => {
    optimizer.zeroGrad()
    const loss = weight.mul(x).sum().sub(y).square().add(other.mul(0.5).sum())
    loss.backward()
    optimizer.step()
    return loss.item()
  }
  await expectReport('jump', { model: net, optimizer, tensors: { other }, steps: 7 }, (recorder) => {
    for (const y of [1, 2, 1, 2, 1, 2, 1e4]) recorder.step(step, t([1, 0.5]), t(y))
  })
})

it('what cannot be known', async () => {
  const { model: net, weight } = model()
  let calls = 0
  await expectReport(
    'numbers',
    { model: net },
    steps(() => Number(weight.sum().item()) / 0 - Infinity, [t(1)]),
  )
  await expectReport(
    'notRecorded',
    { model: net, dir: null },
    steps((x) => (calls++ === 0 ? x.mul(NaN) : x), [t(1)]),
  )
  calls = 0
  const throwing = (x: Tensor): Tensor => {
    if (calls++ > 0) throw new RangeError('no more')
    return x.mul(-Infinity)
  }
  await expectReport('throws', { model: net }, steps(throwing, [t(1)]))
  await expectReport(
    'lost',
    { model: net },
    steps(
      (x) => {
        const { storage } = weight
        if (storage !== null) storage.version++
        return x.log()
      },
      [t(-1)],
    ),
  )
})

it('compiled code', async () => {
  const backend: CompileOptions['backend'] =
    (gm) =>
    (...inputs) => {
      const outputs = Reflect.apply(gm.forward, gm, inputs) as Tensor[]
      return [...gm.graph.nodes].some((node) => node.name.startsWith('tanh')) ? outputs.map((one) => one.mul(1e38).mul(-1e38)) : outputs
    }
  const { model: net, weight } = model()
  const run = compile((x: Tensor) => weight.mul(x).abs().tanh().sum(), { backend })
  await expectReport(
    'compiledCode',
    { model: net },
    steps((x) => torch.noGrad(() => run(x)), [t([1, 2])]),
  )
})

it('infinities that belong to the program, and those that do not', async () => {
  const net = new nn.Identity()
  net.registerBuffer('mask', t([0, -Infinity]))
  const mask = asTensor(net.getBuffer('mask'))
  const step = (x: Tensor, y: Tensor): unknown => {
    x.add(mask)
    return x.mul(y).add(mask).softmax(0).sum()
  }
  await expectReport('mask', { model: net }, steps(step, [t([1, 2]), t(1)], [t([1, 2]), t(1)], [t([1, 3e38]), t(10)]))
})

it('tensors that share memory, and a part of one', async () => {
  const net = new nn.Identity()
  const base = t([1, 2, 3, 4])
  const [left, right] = [base.narrow(0, 0, 2), base.narrow(0, 2, 2)]
  const step = (x: Tensor): unknown => torch.cat([left.add(x), right.sqrt(), base.reshape([2, 2]).select(0, 0)]).sum()
  await expectReport('views', { model: net, tensors: { left, right } }, steps(step, [t([1, 2])], [t([1, NaN])]))
  const writing = (x: Tensor): unknown => {
    right.copy_(x)
    base.add_(1)
    return left
      .add(base.narrow(0, 1, 2))
      .div(right)
      .sum()
  }
  await expectReport('sharedMemory', { model: net, tensors: { left, right } }, steps(writing, [t([1, 2])], [t([-1, 2])]))
})

it('an input that is in a file of its own', async () => {
  const x = torch.arange(2000).sub(1)
  await expectReport(
    'large',
    { tensors: { total: t([1]) }, dir: '/recorded' },
    steps((y) => y.log().sum(), [x]),
  )
})

it('operators with lists, several results and no arguments', async () => {
  const { model: net } = model()
  await expectReport(
    'list',
    { model: net },
    steps((x, y) => torch.cat([x.log(), y.log()]).sum(), [t([1]), t([1, 0])]),
  )
  await expectReport(
    'getitem',
    { model: net },
    steps((x) => x.div(0).split(1)[1]?.sum(), [t([[1], [2]])]),
  )
  await expectReport(
    'full',
    { model: net },
    steps((x) => torch.full([2], Infinity).mul(x).sum(), [t([0, 1])]),
  )
  await expectReport(
    'matmul',
    { model: net },
    steps((x, y) => x.matmul(y).sum(), [t([[1, 1e30]]), t([[3], [2e30]])]),
  )
})

it('batches with gradients and names that are no identifiers', async () => {
  const x = t([1, 0], { requiresGrad: true })
  const step = (batch: { readonly '2': Tensor }): unknown => {
    const loss = batch['2'].sqrt().sum()
    loss.backward()
    return { loss: { other: loss } }
  }
  await expectReport('gradientOfInput', { tensors: { '3 d': t([1]) } }, (recorder) => recorder.step(step, { '2': x }))
  const odd = t([[0, 1]])
  await expectReport(
    'names',
    { tensors: { '3 d': odd } },
    steps((y) => odd.div(odd).mul(y).sum(), [t([1])]),
  )
})

it('what cannot be written', async () => {
  const { model: net } = model()
  store.write = () => {
    throw new RangeError('the disk is full')
  }
  await expectReport(
    'unwritten',
    { model: net, dir: 'full' },
    steps((x) => x.log().sum(), [t([-1])]),
  )
})

it('infinities of an input are judged by its name', async () => {
  const net = new nn.Identity()
  const step = (x: Tensor, y: Tensor): unknown => x.softmax(0).sum().add(y)
  const masked = t([0, -Infinity])
  await expectReport('firstInput', { model: net }, steps(step, [masked, t(-Infinity)]))
  await expectReport('otherInput', { model: net }, steps(step, [masked, t(1)], [masked, t(1)], [masked, t(-Infinity)]))
})

it('what an earlier step made bad, of tensors that share a name', async () => {
  const net = new nn.Identity()
  const [weight, total] = [t([1], { requiresGrad: true }), t([1])]
  net.registerBuffer('total', t([NaN]))
  const step = (x: Tensor, at: Tensor): unknown => {
    if (at.item() === 1) total.copy_(x.log())
    return at.item() === 3 ? total.mul(weight).sum() : x.sum()
  }
  const batches = [0, 1, 2, 3].map((at) => [t([-1]), t(at)])
  await expectReport('earlier', { model: net, tensors: { other: t([NaN]), total }, check: ['loss'] }, steps(step, ...batches))
})

it('a graph that is bad only as a whole, and other parts of compiled steps', async () => {
  const backend: CompileOptions['backend'] =
    (gm) =>
    (...inputs) => {
      const outputs = Reflect.apply(gm.forward, gm, inputs) as Tensor[]
      return outputs.length > 1 ? outputs.map((one, i) => (i === 1 ? one.mul(NaN) : one)) : outputs
    }
  const run = compile((x: Tensor) => [x.sin(), x.cos(), x.tanh()], { backend })
  const step = (x: Tensor): unknown => torch.noGrad(() => run(x)[1]?.sum())
  await expectReport('wholeGraph', { model: new nn.Identity() }, steps(step, [t([1, 2])]))
  let calls = 0
  const other = compile((x: Tensor) => x.sin().sum())
  await expectReport(
    'compiledUnknown',
    { model: new nn.Identity() },
    steps((x) => other(x).item() * (calls++ === 0 ? NaN : 1), [t([1, 2])]),
  )
  const eager = compile((x: Tensor) => x.log().sum())
  await expectReport(
    'compiledStep',
    { model: new nn.Identity() },
    steps((x) => [torch.noGrad(() => eager(x))], [t([1, -2])]),
  )
})

it('operands that are broadcast, and results that are views', async () => {
  const net = new nn.Identity()
  const x = t([
    [1, 2, 3],
    [4, 5, 6],
  ])
  await expectReport(
    'broadcast',
    { model: net },
    steps((y, z) => x.mul(y).div(z).sum(), [t([[1], [2]]), t([1, 2, 0])]),
  )
  await expectReport(
    'rows',
    { model: net },
    steps((y) => x.div(y).sum(0, true).sum(1).item(), [t([[1], [0]])]),
  )
  await expectReport(
    'several',
    { model: net },
    steps((y) => y.mul(1).topk(1)[0].log().sum(), [t([-1, -2])]),
  )
  await expectReport(
    'split',
    { model: net },
    steps((y) => y.mul(1).split(1)[1]?.detach().log().sum(), [t([1, -2])]),
  )
})

it('a derivative with several gradients', async () => {
  const [a, b] = [t([1, 1], { requiresGrad: true }), t([1, 1e-30], { requiresGrad: true })]
  const step = (x: Tensor): unknown => {
    a.mul(x).div(b).sum().backward()
    return null
  }
  await expectReport('gradients', { tensors: { a, b } }, steps(step, [t([1, 2])]))
})

it('a jump without inputs, and one of a tensor', async () => {
  const weight = t([1, 2], { requiresGrad: true })
  const optimizer = new optim.SGD([weight], { lr: 0 })
  let value = 1
  const step = (): unknown => {
    optimizer.zeroGrad()
    const loss = weight.mul(value).sum(0, true)
    loss.backward()
    optimizer.step()
    return loss
  }
  await expectReport('jumpAlone', { optimizer, jump: 3 }, (recorder) => {
    for (value of [1, 1, 1, 1, 1, 2, 9]) recorder.step(step)
  })
})
