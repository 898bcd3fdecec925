// Kinds of statements about gradients: backward inside and outside of f, grad modes, custom functions, hooks, optimizers and training loops.
import { line } from '../program.mjs'

const floatWithGrad = (w) => w.float((name) => w.value(name).requiresGrad)
const leaf = (w) => w.float((name) => w.value(name).requiresGrad && w.value(name).gradFn === null)

/** One backward for all results of f, as aotFunction and PyTorch's have it. */
export const backwardOfAll = `{ const all = [result].flat().filter((t) => t instanceof Tensor && t.requiresGrad); if (all.length > 0) attempt(() => all.map((t) => t.sum()).reduce((p, q) => p.add(q)).backward(), () => []) }`

export const gradients = {
  tensors(w, list) {
    const [first] = list
    if (first !== undefined && !(w.traced && list.some((t) => t.alias !== undefined))) first.grad = true
  },
  write(w) {
    const { random } = w
    const x = floatWithGrad(w)
    const p = leaf(w)
    if (x === undefined || p === undefined) return false
    const gradient = () => w.define(`torch.autograd.grad(${x}.sum(), ${p})[0]`, [p]) !== null
    // A trace does not see .grad.
    if (w.traced) return w.define(`torch.autograd.grad(${x}.sum(), ${p}, { retainGraph: true })[0]`, [p]) !== null
    return random.pick([
      () => w.statement(`${x}.sum().backward(${random.chance(0.4) ? '{ retainGraph: true }' : ''})`) && w.statement(`note('gradient', ${p}.grad)`),
      gradient,
      () => w.define(`torch.autograd.grad(${x}.square().sum(), ${p}, { createGraph: true })[0]`, [p]) !== null,
      () => w.statement(`${p}.grad = null`),
      () => w.statement(`${x}.backward(data(${x}.shape, 3))`),
      () => w.define(`${x}.mul(${p}.grad === null ? 1 : 2)`, [x]) !== null,
      () => w.define(`(${p}.grad ?? ${p}.detach()).mul(2)`, [p]) !== null,
    ])()
  },
  after(w) {
    const { random } = w
    w.push(
      line(
        w.traced
          ? backwardOfAll
          : random.pick([
              backwardOfAll,
              `for (const t of [result].flat()) if (t instanceof Tensor && t.requiresGrad) attempt(() => t.sum().backward(), () => [])`,
              `for (const t of [result].flat()) if (t instanceof Tensor && t.requiresGrad) attempt(() => t.sum().backward({ retainGraph: true }), () => [])`,
              `if (result instanceof Tensor && result.requiresGrad) attempt(() => result.mul(2).sum().backward(), () => [])`,
            ]),
      ),
    )
  },
}

export const gradModes = {
  write(w) {
    const { random } = w
    const x = w.float()
    if (x === undefined) return false
    return random.pick([
      () => w.define(`noGrad(() => ${x}.mul(2))`, [x]) !== null,
      () => w.define(`noGrad(() => enableGrad(() => ${x}.mul(3)))`, [x]) !== null,
      () => w.define(`${x}.detach()`, [x]) !== null,
      // What runs while a program is traced happens once.
      () => !w.traced && w.statement(`note('grad mode', isGradEnabled())`),
      () => !w.traced && w.define(`${x}.detach().mul(2).requiresGrad_()`, [x]) !== null,
      () => w.statement(`setGradEnabled(${random.pick(['true', 'false'])})`),
      () => w.define(`noGrad(() => inferenceMode(() => enableGrad(() => ${x}.mul(2))))`, [x]) !== null,
      () => w.define(`enableGrad(() => noGrad(() => ${x}.mul(2)).add(${x}))`, [x]) !== null,
      () => w.define(`(isGradEnabled() ? ${x}.mul(2) : ${x}.add(1))`, [x]) !== null,
      () => w.define(`inferenceMode(() => ${x}.detach().mul(2))`, [x]) !== null,
    ])()
  },
  finish(w) {
    w.statement('setGradEnabled(true)')
  },
}

const FUNCTIONS = [
  (name, state) =>
    `class ${name} extends torch.autograd.Function { static forward(ctx, x) { ctx.saveForBackward(x); return x.mul(2) } static backward(ctx, g) { return g.mul(${state}.lam) } }`,
  (name, state) =>
    `class ${name} extends torch.autograd.Function { static forward(ctx, x) { ctx.flag = ${state}.flag; ctx.saveForBackward(x); return x.exp() } static backward(ctx, g) { const [x] = ctx.savedTensors; return ctx.flag ? g.mul(x.exp()) : g.neg() } }`,
  (name) =>
    `class ${name} extends torch.autograd.Function { static forward(ctx, x) { return x.mul(2) } static backward(ctx, g) { note('in backward', g); return g.mul(3) } }`,
  (name) =>
    `class ${name} extends torch.autograd.Function { static forward(ctx, x) { ctx.saveForBackward(x); return x.relu() } static backward(ctx, g) { const [x] = ctx.savedTensors; return x.sum().item() > 0.1 ? g : g.mul(0.5) } }`,
  (name) =>
    `class ${name} extends torch.autograd.Function { static forward(ctx, x) { return x.mul(2) } static backward(ctx, g) { return g.mul(5) } }`,
]

export const customFunctions = {
  setup(w) {
    const { random } = w
    const settings = w.name('settings')
    w.assignEach(
      settings,
      Array.from({ length: w.callCount }, () => '({ lam: 0.5, flag: true })'),
    )
    w.push(line(`const ${settings} = { lam: 0.5, flag: true }`))
    w.state.settings = settings
    w.state.functions = [w.name('Fn'), w.name('Fn')]
    for (const name of w.state.functions) {
      const code = random.pick(FUNCTIONS)(name, settings)
      w.assignEach(
        name,
        Array.from({ length: w.callCount }, () => code),
      )
      w.push(line(code))
    }
  },
  write(w) {
    const x = w.float()
    if (x === undefined) return false
    const { settings, functions } = w.state
    const fn = w.random.pick(functions)
    return w.random.pick([
      () => w.define(`${fn}.apply(${x})`, [x]) !== null,
      () => w.define(`${fn}.apply(${x})`, [x]) !== null,
      () => w.define(`(${settings}.flag ? ${functions[0]} : ${functions[1]}).apply(${x})`, [x]) !== null,
      () => w.define(`(${settings}.flag ? ${x}.mul(2) : ${x}.mul(2).detach())`, [x]) !== null,
    ])()
  },
  before(w, call) {
    const { settings } = w.state
    if (call > 0) w.statement(w.random.pick([`${settings}.lam = ${w.random.pick(['2', '0.25', '-1'])}`, `${settings}.flag = !${settings}.flag`]))
  },
}

export const hooks = {
  write(w) {
    const { random } = w
    const x = floatWithGrad(w)
    if (x === undefined) return false
    return random.pick([
      () => w.statement(`${x}.registerHook((g) => g.mul(${random.pick(['2', '0.5', '-1'])}))`),
      () => w.statement(`${x}.registerHook((g) => { note('hook', g) })`),
      () => w.statement(`${x}.registerHook((g) => (g.sum().item() > 0.3 ? g.mul(2) : g))`),
      () => w.statement(`${x}.registerHook((g) => g.mul(2)).remove()`),
      () =>
        w.statement(`${x}.retainGrad()`) && w.statement(`${x}.sum().backward({ retainGraph: true })`) && w.statement(`note('retained', ${x}.grad)`),
    ])()
  },
}

const OPTIMIZERS = [
  (p) => `new optim.SGD([${p}], { lr: 0.1 })`,
  (p) => `new optim.SGD([${p}], { lr: 0.1, momentum: 0.9 })`,
  (p) => `new optim.Adam([${p}], { lr: 0.01 })`,
  (p) => `new optim.AdamW([${p}], { lr: 0.01, weightDecay: 0.1 })`,
  (p) => `new optim.Adam([${p}], { lr: 0.01, amsgrad: true })`,
  (p) => `new optim.SGD([${p}], { lr: 0.1, momentum: 0.9, nesterov: true, weightDecay: 0.01 })`,
  (p) => `new optim.SGD([${p}], { lr: 0.1, maximize: true })`,
  (p) => `new optim.RMSprop([${p}], { lr: 0.01, momentum: 0.5, centered: true })`,
  (p) => `new optim.Adagrad([${p}], { lr: 0.1 })`,
  (p) => `new optim.Adadelta([${p}])`,
  (p) => `new optim.Adamax([${p}])`,
  (p) => `new optim.NAdam([${p}])`,
  (p) => `new optim.RAdam([${p}])`,
  (p) => `new optim.ASGD([${p}])`,
  (p) => `new optim.Rprop([${p}])`,
  (p) => `new optim.Adafactor([${p}])`,
  (p) => {
    const [first, ...rest] = p.split(', ')
    return `new optim.AdamW([{ params: [${first}], lr: 0.1 }, { params: [${rest.join(', ')}], weightDecay: 0 }], { lr: 0.01 })`
  },
]

const SCHEDULES = [
  (optimizer) => `new optim.StepLR(${optimizer}, 2, { gamma: 0.5 })`,
  (optimizer) => `new optim.ExponentialLR(${optimizer}, 0.9)`,
  (optimizer) => `new optim.CosineAnnealingLR(${optimizer}, 4)`,
  (optimizer) => `new optim.LambdaLR(${optimizer}, (k) => 1 / (k + 1))`,
]

/** Parameters and an optimizer, made before f. */
function makeOptimizer(w) {
  const { random, state } = w
  if (state.optimizer !== undefined) return
  const every = (code) => Array.from({ length: w.callCount }, () => code)
  const define = (prefix, code, keyword = 'const') => {
    const name = w.name(prefix)
    w.assignEach(name, every(code))
    w.push(line(`${keyword} ${name} = ${code}`))
    return name
  }
  state.weights = [define('w', 'data([3, 2], 11).requiresGrad_()'), define('w', 'data([2], 12).requiresGrad_()')]
  for (const name of state.weights) w.declare(name)
  if (random.chance(0.3)) w.declare(define('w', `${state.weights[0]}.detach()`))
  state.optimizer = define('opt', random.pick(OPTIMIZERS)(state.weights.join(', ')))
  if (random.chance(0.3)) state.scheduler = define('sched', random.pick(SCHEDULES)(state.optimizer))
  if (w.values(state.scheduler ?? '0') === null) state.scheduler = undefined
  state.losses = define('losses', '[]')
}

/** The loss of a small model, as an expression. */
const lossOf = (w) => {
  const [p, q] = w.state.weights
  const x = w.float()
  const input = x === undefined ? 'data([2, 3], 1)' : `${x}.flatten().sum().mul(0.01).add(data([2, 3], ${w.random.int(9)}))`
  return w.random.pick([
    `${input}.matmul(${p}).add(${q}).square().mean()`,
    `torch.nn.functional.mseLoss(${input}.matmul(${p}).tanh(), ${q}.detach())`,
    `torch.nn.functional.crossEntropy(${input}.matmul(${p}).add(${q}), indices([2], 3, 2))`,
    `${p}.sub(1).square().sum().add(${q}.abs().sum())`,
  ])
}

function trainingStatement(w) {
  const { random, state } = w
  const { optimizer, weights, losses } = state
  const loss = w.name('loss')
  const step = () => {
    const code = [
      `${optimizer}.zeroGrad()`,
      `const ${loss} = ${lossOf(w)}`,
      `${loss}.backward()`,
      random.pick(['', '', `torch.nn.utils.clipGradNorm_([${weights.join(', ')}], 1)`, `noGrad(() => ${weights[0]}.grad.mul_(0.5))`]),
      `${optimizer}.step()`,
      random.pick([
        '',
        `${losses}.push(${loss})`,
        `${losses}.push(${loss}.detach())`,
        `${losses}.push(${loss}.item())`,
        `if (${losses}.length % 2 === 0) note('loss', ${loss}.item())`,
      ]),
      state.scheduler === undefined ? '' : `${state.scheduler}.step()`,
    ].filter((text) => text !== '')
    return code
  }
  const code = step()
  const names = code.map((text) => text.replace(/^const (\w+) =/, '$1 ='))
  w.assignEach(
    loss,
    Array.from({ length: w.callCount }, () => 'null'),
  )
  if (!names.every((text) => w.runs(text))) return false
  const statements = code.map((text) => line(text))
  if (random.chance(0.3)) {
    const i = w.name('i')
    w.push({ parts: [`for (let ${i} = 0; ${i} < ${2 + random.int(2)}; ${i}++) {`, statements, '}'] })
  } else {
    w.push({ parts: ['{', statements, '}'] })
  }
  return true
}

export const optimizers = {
  setup: makeOptimizer,
  write(w) {
    const { random, state } = w
    const { optimizer, weights } = state
    return random.pick([
      () => trainingStatement(w),
      () => w.statement(`${optimizer}.zeroGrad()`),
      () => w.define(`${weights[0]}.mul(2)`, [weights[0]]) !== null,
      () => w.statement(`if (${weights[0]}.grad !== null) ${optimizer}.step()`),
    ])()
  },
  after(w) {
    w.push(line(`note('weights', [${w.state.weights.join(', ')}])`))
    w.push(line(`note('gradients of weights', [${w.state.weights.map((p) => `${p}.grad`).join(', ')}])`))
  },
}

/** Programs whose calls are steps of a training loop. */
export const training = {
  setup: makeOptimizer,
  write: trainingStatement,
  finish(w) {
    trainingStatement(w)
  },
  after(w, call) {
    const { state } = w
    if (call === w.callCount - 1) w.push(line(`note('losses', ${state.losses})`))
    w.push(line(`note('weights', [${state.weights.join(', ')}])`))
    if (w.random.chance(0.3)) w.push(line(`note('evaluation', noGrad(() => ${state.weights[0]}.mul(2).sum()).item())`))
    if (w.random.chance(0.2)) w.push(line(`attempt(() => { ${state.weights[0]}.square().sum().backward(); ${state.optimizer}.step() }, () => [])`))
  },
}
