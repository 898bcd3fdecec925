// Kinds of statements with functions that operators take: custom Functions of several arguments and results, control flow, transforms, hooks of modules.
import { line } from '../program.mjs'

const FUNCTIONS = [
  // Two arguments, two results.
  (name) =>
    `class ${name} extends torch.autograd.Function { static forward(ctx, x, y) { ctx.saveForBackward(x, y); return [x.mul(y), x.add(y)] } static backward(ctx, g, h) { const [x, y] = ctx.savedTensors; return [ctx.needsInputGrad[0] ? g.mul(y).add(h) : null, ctx.needsInputGrad[1] ? g.mul(x).add(h) : null] } }`,
  // A saved result, and a number.
  (name) =>
    `class ${name} extends torch.autograd.Function { static forward(ctx, x, y, k = 2) { const z = x.tanh().mul(k); ctx.saveForBackward(z); ctx.k = k; return [z, y.mul(1)] } static backward(ctx, g, h) { const [z] = ctx.savedTensors; return [g.mul(z.div(ctx.k).square().neg().add(1)).mul(ctx.k), h, null] } }`,
  // One result has no gradient.
  (name) =>
    `class ${name} extends torch.autograd.Function { static forward(ctx, x, y) { const sign = x.sign(); ctx.markNonDifferentiable(sign); return [x.mul(3), sign] } static backward(ctx, g) { return [g.mul(3), null] } }`,
  // It counts its calls, and reads the value of a gradient.
  (name) =>
    `class ${name} extends torch.autograd.Function { static calls = 0; static forward(ctx, x, y) { ctx.order = ++${name}.calls; ctx.saveForBackward(y); return [x.mul(2), y.exp()] } static backward(ctx, g, h) { note('backward of call', ctx.order); const [y] = ctx.savedTensors; return [g.abs().sum().item() > 1 ? g.mul(2) : g, h.mul(y.exp())] } }`,
  // It writes to an argument of its backward, and keeps a tensor without ctx.saveForBackward.
  (name) =>
    `class ${name} extends torch.autograd.Function { static forward(ctx, x, y) { ctx.kept = x.detach().mul(2); return [x.square(), y.neg()] } static backward(ctx, g, h) { return [g.clone().mul_(ctx.kept), h.neg()] } }`,
  // A gradient inside of the forward, and the argument itself as a result.
  (name) =>
    `class ${name} extends torch.autograd.Function { static forward(ctx, x, y) { const p = x.detach().requiresGrad_(); const slope = enableGrad(() => torch.autograd.grad(p.sin().sum(), p)[0]); ctx.saveForBackward(slope); return [p.detach().sin(), y] } static backward(ctx, g, h) { return [g.mul(ctx.savedTensors[0]), h] } }`,
]

export const richFunctions = {
  setup(w) {
    const { random, state } = w
    state.rich = [w.name('Rich'), w.name('Rich')]
    for (const name of state.rich) {
      const code = random.pick(FUNCTIONS)(name)
      w.each(name, code)
      w.push(line(code))
      // Side effects would be lost: they break the promise.
      if (random.chance(0.25) && !code.includes('note(')) w.statement(`allowInGraph(${name})`)
    }
  },
  write(w) {
    const { random, state } = w
    const x = w.float()
    if (x === undefined) return false
    const y = w.float((name) => w.shape(name).join() === w.shape(x).join()) ?? x
    const fn = random.pick(state.rich)
    const leaf = `${x}.detach().requiresGrad_()`
    return random.pick([
      () => w.define(`${fn}.apply(${x}, ${y})[${random.int(2)}]`, [x, y]) !== null,
      () => w.define(`${fn}.apply(${x}, ${y}).reduce((p, q) => p.add(q))`, [x, y]) !== null,
      () => w.define(`${state.rich[0]}.apply(...${state.rich[1]}.apply(${x}, ${y}))[0]`, [x, y]) !== null,
      () => w.define(`noGrad(() => ${fn}.apply(${x}, ${y})[0])`, [x, y]) !== null,
      () => w.define(`((p) => torch.autograd.grad(${fn}.apply(p, ${y})[0].sum(), p)[0])(${leaf})`, [x, y]) !== null,
      () =>
        w.define(
          `((p) => { const [g] = torch.autograd.grad(${fn}.apply(p, p.mul(2))[0].sum(), p, { createGraph: true }); return g.sum().requiresGrad ? torch.autograd.grad(g.square().sum(), p, { allowUnused: true })[0] ?? p : g })(${leaf})`,
          [x],
        ) !== null,
    ])()
  },
}

/** cond, whileLoop, scan and map: graphs within the graph. */
export const controlFlow = {
  write(w) {
    const { random } = w
    const x = w.float((name) => w.shape(name).length > 0 && w.value(name).numel > 0)
    if (x === undefined) return false
    const scans = [
      () => w.define(`torch.scan((c, t) => [c.add(t), c.mul(t)], ${x}[0].mul(0), ${x})[1]`, [x]),
      () => w.define(`torch.map((t) => t.mul(2).add(1), ${x})`, [x]),
    ]
    // Conditions on values cannot be traced operator by operator.
    if (w.traced) return random.pick(scans)() !== null
    return (
      random.pick([
        ...scans,
        () => w.define(`torch.cond(${x}.sum().gt(0.1), (t) => t.mul(2), (t) => t.sub(1), [${x}])`, [x]),
        () => w.define(`torch.cond(${x}.amax().gt(1), (t) => t.sin(), (t) => t.exp(), [${x}])`, [x]),
        () => w.define(`torch.whileLoop((i, t) => i.lt(3), (i, t) => [i.add(1), t.mul(0.5)], [torch.tensor(0).long(), ${x}.detach()])[1]`, [x]),
      ])() !== null
    )
  },
}

/** torch.func: derivatives and vmap. */
export const transforms = {
  write(w) {
    const { random } = w
    const x = w.float((name) => w.shape(name).length > 0 && w.value(name).numel > 0 && w.value(name).numel < 40)
    if (x === undefined) return false
    const body = random.pick(['t.sin().sum()', 't.square().sum().mul(0.5)', 't.mul(t.detach()).sum()'])
    return (
      random.pick([
        () => w.define(`func.grad((t) => ${body})(${x})`, [x]),
        () => w.define(`func.gradAndValue((t) => ${body})(${x})[1]`, [x]),
        () => w.define(`func.vmap((t) => t.mul(2).sum())(${x})`, [x]),
        () => w.define(`func.vmap((t) => t.sin())(${x})`, [x]),
        () => w.define(`func.jvp((t) => t.mul(t), [${x}], [${x}.mul(0.5)])[1]`, [x]),
        () => w.define(`func.vjp((t) => t.exp(), ${x})[1](${x})`, [x]),
        // Eagerly its result requires grad though no argument does; a traced one does not.
        () => (w.traced ? null : w.define(`func.jacrev((t) => t.square())(${x}.flatten())`, [x])),
      ])() !== null
    )
  },
}

/** Hooks of modules: before, after, and in the backward. */
export const moduleHooks = {
  setup(w) {
    const { state } = w
    state.hooked = w.name('hooked')
    const made = `(torch.manualSeed(7), new nn.Sequential(new nn.Linear(3, 3), new nn.Tanh()))`
    w.each(state.hooked, made)
    w.push(line(`const ${state.hooked} = ${made}`))
  },
  write(w) {
    const { random, state } = w
    const { hooked } = state
    const x = w.float((name) => w.shape(name).at(-1) === 3) ?? 'data([2, 3], 9)'
    return random.pick([
      () => w.define(`${hooked}(${x})`, [x]) !== null,
      () => w.define(`${hooked}(${x})`, [x]) !== null,
      () => w.statement(`${hooked}[0].registerForwardHook((module, args, output) => output.mul(2))`),
      () => w.statement(`${hooked}.registerForwardPreHook((module, [input]) => [input.add(1)])`),
      () => w.statement(`${hooked}.registerForwardHook((module, args, output) => { note('output', output.shape) })`),
      () => w.statement(`${hooked}[1].registerForwardHook(() => {}).remove()`),
      () => w.statement(`${hooked}[0].weight.registerHook((g) => g.mul(0.5))`),
      () => w.statement(`${hooked}[0].weight.registerPostAccumulateGradHook((p) => { note('accumulated', p.grad) })`),
      () => w.statement(`${hooked}.registerFullBackwardHook((module, inputs, outputs) => { note('backward of the module', outputs) })`),
      () => w.statement(`${hooked}(${x}).square().sum().backward()`),
      () => w.statement(`${hooked}.zeroGrad()`),
    ])()
  },
  after(w) {
    w.push(line(`note('gradients', [...${w.state.hooked}.parameters()].map((p) => p.grad))`))
  },
}
