// The programs of the soak. Each computes numbers from a seed. `attempt(run, isDone?)` runs a piece of work that may fail and repeats it until it succeeds: without failures it is a plain
// call, so that the same program gives the numbers to compare with; work draws no random numbers. Work that may be repeated must leave everything as it was when it fails, or be done: then `isDone` says so.

/** The elements of tensors, as numbers that compare bit for bit. */
const values = (...tensors) => tensors.map((tensor) => [...tensor.detach().toTypedArray()])

/** A copy of a tensor's elements, to see whether it was changed. */
const sameAs = (tensor, data) => {
  const now = tensor.toTypedArray()
  return now.length === data.length && now.every((value, i) => Object.is(value, data[i]))
}

function network({ torch }, random) {
  const { nn } = torch
  const width = random.pick([8, 33, 128, 400])
  torch.manualSeed(random.int(1e6))
  return { width, model: new nn.Sequential(new nn.Linear(16, width), new nn.LayerNorm([width]), new nn.GELU(), new nn.Linear(width, 4)) }
}

/** Training: forward, backward and optimizer, each of which may fail; optionally the forward is compiled, a hook throws, or the rows are many. */
function training(kind) {
  return (api, random, attempt) => {
    const { torch, compile } = api
    const { model } = network(api, random)
    const rows = random.pick([4, 64, 2000])
    const Optimizer = torch.optim[random.pick(['SGD', 'Adam', 'AdamW', 'RMSprop', 'NAdam', 'Adagrad'])]
    const optimizer = new Optimizer(model.parameters(), { lr: 0.01 })
    const x = torch.randn([rows, 16])
    const target = torch.randn([rows, 4])
    const loss = (input) => torch.nn.functional.mseLoss(model.call(input), target)
    const forward = kind === 'compiled' ? compile(loss) : loss
    const parameters = [...model.parameters()]
    const losses = []
    for (let step = 0; step < 4; step++) {
      optimizer.zeroGrad()
      attempt('backward', () => {
        const value = forward(x)
        // A backward that fails has added to no gradient, so that forward and backward are run again.
        const before = parameters.map((p) => p.grad)
        let hook = null
        if (kind === 'hooks' && attempt.fails()) {
          hook = parameters[step % parameters.length].registerHook(() => {
            throw new RangeError('a hook that throws')
          })
        }
        try {
          value.backward()
        } catch (error) {
          parameters.forEach((p, i) => {
            if (p.grad !== before[i] && hook === null) throw new Error(`a failed backward left a gradient of shape [${p.shape}]`, { cause: error })
          })
          optimizer.zeroGrad()
          throw error
        } finally {
          hook?.remove()
        }
        losses.push(value.item())
      })
      const data = parameters.map((p) => p.toTypedArray())
      attempt(
        'step',
        () => optimizer.step(),
        // All parameters were updated, or none.
        () => {
          const same = parameters.map((p, i) => sameAs(p, data[i]))
          if (same.some((s) => s !== same[0])) throw new Error(`a failed step changed ${same.filter((s) => !s).length} of ${same.length} parameters`)
          return !same[0]
        },
      )
    }
    return [losses, ...values(...parameters)]
  }
}

/** A program that trains inside of compile, optimizer and all. */
function compiledStep(api, random, attempt) {
  const { torch, compile } = api
  const { model } = network(api, random)
  const optimizer = new torch.optim.SGD(model.parameters(), { lr: 0.01, momentum: 0.9 })
  const x = torch.randn([32, 16])
  const parameters = [...model.parameters()]
  const step = compile((input) => {
    optimizer.zeroGrad()
    const value = model.call(input).square().mean()
    value.backward()
    optimizer.step()
    return value
  })
  // The buffers of the momentum are there.
  step(x)
  const losses = []
  for (let i = 0; i < 3; i++) {
    const data = parameters.map((p) => p.toTypedArray())
    attempt(
      'compiled step',
      () => losses.push(step(x).item()),
      () => {
        const same = parameters.map((p, k) => sameAs(p, data[k]))
        if (same.some((s) => s !== same[0]))
          throw new Error(`a failed compiled step changed ${same.filter((s) => !s).length} of ${same.length} parameters`)
        return !same[0]
      },
    )
  }
  return values(...parameters)
}

/** Writes in place, eager or compiled: what fails has not begun, or is done. */
function writes(compiled) {
  return ({ torch, compile }, random, attempt) => {
    const n = random.pick([3, 1000, 300_000])
    const x = torch.arange(n).div(7)
    const y = torch.arange(n).sin()
    const all = [
      (a, b) => a.mul_(1.5).add(b.cumsum(0)),
      (a, b) => a.copy_(b.exp().sub(a)),
      (a, b) => a.addcmul_(b, b, { value: 0.5 }),
      (a, b) => a.add_(b.flip(0)),
      (a, b) => a.view([-1, 1]).sub_(b.view([-1, 1]).sort(0)[0]),
      (a, b) => a.clamp_({ min: -3, max: 3 }).lerp_(b, 0.25),
    ]
    for (let i = 0; i < 4; i++) {
      const body = random.pick(all)
      const run = compiled ? compile(body) : body
      const before = x.clone()
      const after = x.clone()
      // What eager gives, one write after the other.
      const stages = [before.toTypedArray()]
      body(after, y)
      stages.push(after.toTypedArray())
      const isClamp = body === all.at(-1)
      if (isClamp) stages.push(before.clamp_({ min: -3, max: 3 }).toTypedArray())
      attempt(
        'write',
        () => void run(x, y),
        () => {
          if (!stages.some((stage) => near(x.toTypedArray(), stage, compiled))) throw new Error(`a failed write left other numbers: ${String(body)}`)
          x.copy_(torch.tensor(stages[0]))
          return false
        },
      )
    }
    return values(x)
  }
}

/** Equal, or within rounding where compiled code computes. */
const near = (actual, expected, rounded) =>
  expected.every((value, i) => Object.is(value, actual[i]) || (rounded && Math.abs(value - actual[i]) <= 1e-5 * (1 + Math.abs(value))))

/** Inference on large tensors, without recording. */
function inference({ torch, compile, noGrad }, random, attempt) {
  const n = random.pick([100, 700, 1500])
  torch.manualSeed(random.int(1e6))
  const a = torch.randn([n, n])
  const body = (x) => x.matmul(x.t()).softmax(1).matmul(x).relu().sum(0)
  const run = random.next() < 0.5 ? compile(body) : body
  const results = []
  for (let i = 0; i < 2; i++) attempt('inference', () => results.push(...values(noGrad(() => run(a)))))
  return results
}

/** Views, copies and lists of tensors that come and go. */
function churn({ torch }, random, attempt) {
  const kept = []
  for (let i = 0; i < 30; i++) {
    const size = random.pick([10, 5000, 200_000])
    attempt('churn', () => {
      const made = torch.arange(size).mul(i + 1)
      kept.push(made.slice(0, 0, size, 7).add(kept.at(-1)?.mean() ?? 0))
    })
    if (kept.length > 8) kept.shift()
  }
  return kept.map((tensor) => tensor.sum().item())
}

export const programs = {
  training: training('eager'),
  'compiled training': training('compiled'),
  'throwing hooks': training('hooks'),
  'compiled steps': compiledStep,
  writes: writes(false),
  'compiled writes': writes(true),
  inference,
  churn,
}
