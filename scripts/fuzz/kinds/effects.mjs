// Kinds of statements with effects: writes, aliases, numbers and tensors of closures, values that are kept, random numbers.
import { line } from '../program.mjs'
import { viewOf } from './basis.mjs'

/** An in-place operator on `x`, an expression of shape `shape`, as an expression. */
function writeTo(w, x, shape) {
  const { random } = w
  const y = w.tensor((name) => w.shape(name).join() === shape.join()) ?? random.pick(['2', '0.5'])
  return random.pick([
    `${x}.add_(${y})`,
    `${x}.add_(1)`,
    `${x}.mul_(${random.pick(['2', '0.5', y])})`,
    `${x}.copy_(${y === '2' ? x : y})`,
    `${x}.fill_(${random.int(4)})`,
    `${x}.zero_()`,
    `${x}.sub_(${y}, { alpha: 0.5 })`,
    `torch.relu_(${x})`,
    `${x}.neg_()`,
    `${x}.clamp_(-1, 1)`,
    `${x}.lerp_(${y}, 0.5)`,
    `${x}.addcmul_(${y}, ${y})`,
  ])
}

export const inplace = {
  write(w) {
    const { random } = w
    const x = w.tensor()
    if (x === undefined) return false
    const target = random.chance(0.4) ? viewOf(w, x) : x
    const [made] = w.values(target) ?? []
    if (made === undefined) return false
    const code = writeTo(w, target, made.shape)
    if (random.chance(0.25)) return w.statement(`noGrad(() => ${code})`)
    if (random.chance(0.2)) return w.define(code, [x]) !== null
    return w.statement(code)
  },
  // Results may share memory with arguments, and with each other: writes show it.
  after(w) {
    const { random } = w
    if (!random.chance(0.5)) return
    w.push(line(`const tensors = [result, ...latestArguments()].flat().filter((t) => t instanceof Tensor && t.numel > 0 && /float/.test(t.dtype))`))
    w.push(
      line(
        `tensors.slice(${random.int(3)}, ${1 + random.int(4)}).forEach((t, i) => attempt(() => noGrad(() => t.detach().flatten().select(0, 0).add_(i + 1)), () => []))`,
      ),
    )
    w.push(line(`note('after the writes', tensors)`))
  },
}

export const aliases = {
  tensors(w, list) {
    const { random } = w
    const [first] = list
    if (first === undefined) return
    // aotFunction refuses writes to memory that it shares with an argument that requires grad.
    first.grad = first.grad && !w.traced && random.chance(0.2)
    if (list.length < 2) list.push({ name: 'b', shape: first.shape, grad: false })
    if (w.traced) for (const t of list) t.grad = false
    for (const t of list.slice(1)) {
      if (random.chance(0.25)) continue
      t.alias = random.pick([
        'a',
        'a.detach()',
        'a.view([-1])',
        'a.T',
        'a.unsqueeze(0)',
        first.shape.length > 0 ? 'a.narrow(0, 0, Math.min(1, a.shape[0]))' : 'a',
        'a.expand([2, ...a.shape])',
      ])
      if (first.grad) t.alias = t.alias.replace(/^a/, 'a.detach()')
    }
  },
  write: inplace.write,
}

export const closureNumbers = {
  setup(w) {
    w.state.number = w.name('k')
    const first = w.random.pick(['1', '2', '0.5', '-3', '0', 'true'])
    w.push(line(`let ${w.state.number} = ${first}`))
    w.assignEach(
      w.state.number,
      Array.from({ length: w.callCount }, () => first),
    )
  },
  parameters(w) {
    const { random, program } = w
    const values = program.calls.map(() => random.pick(['1', '2', '3', '1.5', '0.1', '-7', '0', '1e10', '-0', 'NaN', '2147483648', '100']))
    w.state.numberArg = 'n'
    program.params.push('n')
    program.calls.forEach((call, i) => call.list.push(values[i]))
    w.assignEach('n', values)
  },
  write(w) {
    const { random, state } = w
    const k = random.pick([state.number, state.numberArg])
    const x = w.tensor()
    return (
      random.pick([
        () => w.define(`${x}.${random.pick(['add', 'mul', 'sub', 'div', 'maximum', 'pow'])}(${k})`, [x]),
        () => w.define(`${x}.add(${w.tensor()}, { alpha: ${k} })`, [x]),
        () => w.define(`${x}.clamp(null, ${k})`, [x]),
        () => w.define(`torch.addcmul(${x}, ${x}, ${x}, { value: ${k} })`, [x]),
        () => w.define(`${x}.${random.pick(['gt', 'eq', 'le'])}(${k})`, []),
        () => w.define(`${x}.bitwiseAnd(${k})`, [x]),
        () => w.define(`torch.full([2], ${k})`, []),
        () => w.define(`${x}.maskedFill(${x}.gt(0), ${k})`, [x]),
        () => w.define(`${x}.add(Number(${k}) * 2)`, [x]),
        () => w.define(`torch.nn.functional.leakyRelu(${x}, ${k})`, [x]),
        () => w.define(`(${k} > 1 ? ${x}.mul(3) : ${x}.add(2))`, [x]),
        () => (w.statement(`${state.number} = ${random.pick([`Number(${state.number}) + 1`, '1.5', `${k}`])}`) ? 1 : null),
      ])() !== null
    )
  },
  before(w, call) {
    if (call > 0 && w.random.chance(0.8))
      w.statement(`${w.state.number} = ${w.random.pick(['1', '2', '0.5', '7', '-1.25', 'NaN', '3e9', '0', 'false'])}`)
  },
}

export const closureTensors = {
  setup(w) {
    const { random, state } = w
    const shape = random.pick(['[2, 3]', '[3]', '[]', '[2, 3]'])
    state.outer = w.name('w')
    w.assignEach(
      state.outer,
      Array.from({ length: w.callCount }, () => `data(${shape}, 5)`),
    )
    w.push(line(`let ${state.outer} = data(${shape}, 5)`))
    w.declare(state.outer)
    // makeFx refuses writes to one of two views from outside.
    if (!w.traced && random.chance(0.5)) {
      state.outerView = w.name('w')
      const view = random.pick(['detach()', 'view([-1])', 'unsqueeze(0)', 'T'])
      w.assignEach(
        state.outerView,
        Array.from({ length: w.callCount }, () => `${state.outer}.${view}`),
      )
      w.push(line(`const ${state.outerView} = ${state.outer}.${view}`))
      w.declare(state.outerView)
    }
    state.held = w.name('held')
    w.assignEach(
      state.held,
      Array.from({ length: w.callCount }, () => '({ t: null })'),
    )
    w.push(line(`const ${state.held} = { t: null }`))
  },
  write(w) {
    const { random, state } = w
    const x = w.tensor()
    const { outer, outerView, held } = state
    return random.pick([
      () => w.define(`${x}.${random.pick(['add', 'mul'])}(${outer})`, [x, outer]) !== null,
      () => w.statement(`noGrad(() => ${outer}.${random.pick(['add_(1)', 'mul_(0.5)', `copy_(${x})`])})`),
      // The view is made before its base gets a history.
      () => {
        const view = random.pick(['view([-1])', 'unsqueeze(0)', 'T', 'detach()', 'unsqueeze(0).select(0, 0)'])
        return (
          w.define(`(() => { const base = torch.zerosLike(${x}); const view = base.${view}; base.add_(${x}); return view.mul(2) })()`, [x]) !== null
        )
      },
      () => outerView !== undefined && w.define(`${outerView}.mul(2)`, [outerView]) !== null,
      () => outerView !== undefined && w.statement(`noGrad(() => ${outerView}.add_(1))`),
      () => !w.traced && w.statement(`${outer} = ${outer}.mul(0.5)`),
      () => !w.traced && w.statement(`${held}.t = ${x}`),
      () => !w.traced && w.statement(`${held}.t = ${held}.t === null ? ${x}.mul(1) : torch.cat([${held}.t.flatten(), ${x}.flatten()])`),
      () => w.define(`(${held}.t === null ? ${x} : ${x}.add(${held}.t.sum()))`, [x]) !== null,
    ])()
  },
  before(w, call) {
    const { random, state } = w
    if (call === 0) return
    random.pick([
      () => !w.traced && w.statement(`${state.outer} = data(${state.outer}.shape, ${random.int(100)})`),
      () => w.statement(`noGrad(() => ${state.outer}.mul_(2))`),
      () => {},
    ])()
  },
  after(w) {
    const { state } = w
    w.push(line(`note('outer', [${[state.outer, state.outerView, `${state.held}.t`].filter((name) => name !== undefined).join(', ')}])`))
  },
}

/** Values that stay alive after the call, in a list, and are read later. */
export const escapes = {
  setup(w) {
    w.state.kept = w.name('kept')
    w.assignEach(
      w.state.kept,
      Array.from({ length: w.callCount }, () => '[]'),
    )
    w.push(line(`const ${w.state.kept} = []`))
  },
  write(w) {
    const { random, state } = w
    const x = w.tensor()
    return random.pick([
      () => w.statement(`${state.kept}.push(${x})`),
      () => w.statement(`${state.kept}.push({ x: ${x}, n: ${state.kept}.length })`),
      () => w.statement(`${state.kept}.push(${viewOf(w, x)})`),
      () => w.statement(`${state.kept}.push(() => ${x}.mul(2))`),
    ])()
  },
  after(w, call) {
    const { random, state, callCount } = w
    if (call === callCount - 1 || random.chance(0.4))
      w.push(line(`note('kept', ${state.kept}.map((item) => (item instanceof Function ? item() : item)))`))
  },
}

export const random = {
  write(w) {
    const { random: r } = w
    const x = w.float()
    if (x === undefined) return false
    return r.pick([
      () => w.define(`${x}.add(torch.rand(${x}.shape))`, [x]) !== null,
      () => w.define(`torch.randn([2, 3])`) !== null,
      () => w.define(`torch.nn.functional.dropout(${x}, ${r.pick(['0.5', '0.1', '0', '1'])})`, [x]) !== null,
      () => w.define(`torch.randint(0, 5, [3])`) !== null,
      () => w.define(`torch.randperm(4)`) !== null,
      () => w.define(`torch.randLike(${x})`, [x]) !== null,
      () => w.define(`torch.bernoulli(${x}.detach().sigmoid())`, [x]) !== null,
      () => w.statement(`noGrad(() => ${x}.${r.pick(['uniform_()', 'normal_()', 'uniform_(-1, 2)'])})`),
      () => !w.traced && w.statement(`torch.manualSeed(${r.int(5)})`),
    ])()
  },
  after(w) {
    w.push(line(`note('random numbers after the call', torch.rand([2]))`))
  },
}
