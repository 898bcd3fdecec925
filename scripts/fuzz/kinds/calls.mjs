// Kinds of statements about what surrounds the operators: containers and modules as arguments, code that capture must leave alone, settings, errors from callbacks.
import { line } from '../program.mjs'

/** Arguments in Maps, Sets, instances of classes, and with keys that come and go. */
export const containers = {
  setup(w) {
    const name = w.name('Box')
    // How often a function runs while it is traced is its own affair.
    const counting = w.traced ? '' : 'this.count++; '
    const code = `class ${name} { constructor(x, s) { this.x = x; this.s = s; this.count = 0 } scaled() { ${counting}return this.x.mul(this.s) } get twice() { return this.x.mul(2) } }`
    w.each(name, code)
    w.push(line(code))
    w.state.box = name
  },
  parameters(w) {
    const { random, program, state } = w
    const forms = [
      (k) => `new Map([['x', data([2, 3], ${k})], ['s', ${k % 3}]])`,
      (k) => `new Set([data([3], ${k}), data([3], ${k + 1})])`,
      (k) => `new ${state.box}(data([2, 3], ${k}), ${k % 2 === 0 ? 2 : 1.5})`,
      (k) =>
        `{ x: data([3], ${k})${k % 2 === 0 ? ', bias: data([3], 7)' : ''}, flag: ${k % 3 === 0}, name: ${k % 3 === 1 ? 'undefined' : k % 3 === 2 ? 'null' : "'n'"} }`,
      (k) => `[data([3], ${k}), [${k}, { deep: data([3], ${k}) }], ${k % 2 === 0 ? 'null' : 'true'}]`,
    ]
    const form = random.pick(forms)
    const first = random.int(50)
    const values = program.calls.map((_, i) => form(first + i))
    program.params.push('box')
    program.calls.forEach((call, i) => call.list.push(values[i]))
    w.assignEach(
      'box',
      values.map((v) => `(${v})`),
    )
    // Held from call to call, and changed by f.
    state.store = w.name('store')
    const store = random.pick(['new Map()', 'new Set()', 'new WeakMap()'])
    state.storeKind = store.slice(4, -2)
    w.each(state.store, store)
    w.push(line(`const ${state.store} = ${store}`))
  },
  write(w) {
    const { random, state } = w
    const x = w.tensor()
    const { store, storeKind } = state
    return (
      random.pick([
        () => w.define(`box.get('x').mul(box.get('s'))`),
        () => w.define(`[...box].reduce((p, q) => p.add(q))`),
        () => w.define(`box.scaled()`),
        () => w.define(`box.twice`),
        () => w.define(`(box.bias === undefined ? box.x : box.x.add(box.bias))`),
        () => w.define(`(({ x, bias = x.mul(2), flag = true }) => (flag ? x.add(bias) : x.sub(bias)))(box)`),
        () => w.define(`box[1][1].deep.add(box[1][0])`),
        () => w.define(`(box.name ?? null) === null ? ${x}.add(1) : ${x}.mul(2)`, [x]),
        () => (!w.traced && w.statement(`box.x = ${x}`) ? x : null),
        () => (!w.traced && w.statement(`box.s += 1`) ? x : null),
        () => (!w.traced && w.statement(`noGrad(() => box.x.add_(1))`) ? x : null),
        () => {
          if (w.traced) return null
          if (storeKind === 'Map') return w.statement(`${store}.set('last', ${x})`) ? x : null
          if (storeKind === 'Set') return w.statement(`${store}.add(${x})`) ? x : null
          return w.statement(`${store}.set(f, ${x})`) ? x : null
        },
        () => (storeKind === 'Map' ? w.define(`(${store}.has('last') ? ${store}.get('last').mul(2) : ${x})`, [x]) : null),
        () => (storeKind === 'Set' ? w.define(`(${store}.size > 1 ? ${x}.mul(2) : ${x})`, [x]) : null),
      ])() !== null
    )
  },
  after(w) {
    const { store, storeKind } = w.state
    if (storeKind !== 'WeakMap') w.push(line(`note('store', [...${store}${storeKind === 'Map' ? '.values()' : ''}])`))
  },
}

/** Modules that come in as arguments, whose attributes f writes. */
export const modules = {
  setup(w) {
    const { state } = w
    const code = `class ${(state.net = w.name('Net'))} extends nn.Module { constructor(k) { super(); this.w = new nn.Parameter(data([3], k)); this.inner = new nn.Linear(3, 3); this.steps = 0; this.cache = null; this.registerBuffer('seen', torch.zeros([3])) } forward(x) { this.steps++; return this.inner(x.mul(this.w)) } }`
    w.each(state.net, code)
    w.push(line(code))
    state.module = w.name('net')
    const made = `(torch.manualSeed(5), new ${state.net}(4))`
    w.each(state.module, made)
    w.push(line(`const ${state.module} = ${made}`))
  },
  parameters(w) {
    const { program, state, random } = w
    const other = random.chance(0.4)
    const values = program.calls.map((_, i) => (other && i % 2 === 1 ? `(torch.manualSeed(5), new ${state.net}(${i}))` : state.module))
    program.params.push('net')
    program.calls.forEach((call, i) => call.list.push(values[i]))
    w.assignEach('net', values)
  },
  write(w) {
    const { random } = w
    const x = w.float((name) => w.shape(name).at(-1) === 3) ?? 'data([2, 3], 9)'
    return random.pick([
      () => w.define(`net(${x})`, [x]) !== null,
      () => w.define(`net(${x})`, [x]) !== null,
      () => w.statement(`net.cache = net.cache === null ? ${x}.mul(2) : net.cache.add(1)`),
      () => w.define(`(net.cache === null ? ${x} : net.cache)`, [x]) !== null,
      () => w.statement(`net.seen = net.seen.add(1)`),
      () => w.statement(`noGrad(() => net.seen.add_(${x}.detach().sum()))`),
      () => w.statement(`noGrad(() => net.w.mul_(0.5))`),
      () => w.define(`net.inner.weight.sum().mul(net.steps)`) !== null,
      () => w.statement(`net.inner.weight.requiresGrad = ${random.pick(['true', 'false'])}`),
      () => w.statement(`net.extra = ${random.int(3)}`),
      () => w.define(`${x}.mul(net.extra ?? 1)`, [x]) !== null,
      () => w.statement(`net.${random.pick(['train()', 'eval()', 'zeroGrad()'])}`),
      () => w.statement(`net(${x}).sum().backward()`),
    ])()
  },
  after(w) {
    const { module } = w.state
    w.push(line(`note('module', [${module}.steps, ${module}.cache, ${module}.seen, [...${module}.parameters()].map((p) => [p, p.grad])])`))
  },
}

/** Code that capture leaves alone, or ends at. What runs there is exact: the judge does not see it. */
export const breaks = {
  setup(w) {
    const { state } = w
    state.eager = w.name('eager')
    const code = `disable((t) => { note('in disabled code', t); return t.mul(3) })`
    w.each(state.eager, code)
    w.push(line(`const ${state.eager} = ${code}`))
    state.writer = w.name('writer')
    const writes = `disable((t) => { noGrad(() => t.add_(1)) })`
    w.each(state.writer, writes)
    w.push(line(`const ${state.writer} = ${writes}`))
  },
  write(w) {
    const { random, state } = w
    const x = w.float()
    if (x === undefined) return false
    return random.pick([
      () => w.statement('graphBreak()'),
      () => w.define(`${state.eager}(${x})`, [x]) !== null,
      () => w.define(`${state.eager}(${x}.mul(2))`, [x]) !== null,
      () => w.statement(`${state.writer}(${x})`),
      () => w.define(`allowInGraph((t) => t.mul(2))(${x})`, [x]) !== null,
      () => w.define(`disable((t) => compile((u) => u.add(1))(t))(${x})`, [x]) !== null,
      () => w.define(`compile((t) => t.mul(2).add(1))(${x})`, [x]) !== null,
    ])()
  },
}

/** The default dtype, changed in f or between calls. */
export const defaultDtypes = {
  write(w) {
    const { random } = w
    const x = w.tensor()
    return random.pick([
      () => w.statement(`defaultDtype('${random.pick(['float64', 'float32'])}')`),
      () => w.define(`torch.tensor([1.5, 2])`) !== null,
      () => w.define(`torch.ones([3]).mul(0.1)`) !== null,
      () => w.define(`torch.arange(3).div(3)`) !== null,
      () => w.define(`${x}.long().mul(0.5)`, [x]) !== null,
      () => w.define(`${x}.gt(0).float().mean()`, [x]) !== null,
      () => w.statement(`note('default', torch.getDefaultDtype())`),
    ])()
  },
  finish(w) {
    w.statement(`defaultDtype('float32')`)
  },
  before(w, call) {
    if (call > 0 && w.random.chance(0.3)) w.statement(`defaultDtype('${w.random.pick(['float64', 'float32'])}')`)
  },
  after(w) {
    w.statement(`defaultDtype('float32')`)
  },
}

/** Code that starts a function which ends later. When a program is shrunk it may lose what the function reads: that this rejects must not end the process. */
const started = (body) => `(async () => { ${body} })().catch(() => undefined)`

/** Functions that start now and end later: their first part runs in the call. */
export const asyncParts = {
  setup(w) {
    w.state.later = w.name('later')
    w.each(w.state.later, '[]')
    w.push(line(`const ${w.state.later} = []`))
  },
  write(w) {
    const { random, state } = w
    const x = w.tensor()
    return random.pick([
      () => w.statement(`void ${started(`${state.later}.push(${x}.mul(2)); await null`)}`),
      () => w.statement(`void ${started(`note('before await', ${x}); await null; try { ${x}.add(1).sum().item() } catch {}`)}`),
      () => w.statement(`void ${started(`try { ${state.later}.push(${x}.view([7, 11])) } catch (error) { note('caught', error) } await null`)}`),
      () => w.define(`(() => { let t = ${x}; ${started(`t = t.add(1); await null; t = null`)}; return t })()`, [x]) !== null,
    ])()
  },
  after(w) {
    w.push(line(`note('later', ${w.state.later})`))
  },
}

/** Errors from callbacks: hooks, backwards of Functions, iterators, comparators. */
export const throwingCallbacks = {
  write(w) {
    const { random } = w
    const x = w.float()
    if (x === undefined) return false
    const thrown = `throw new RangeError('from a callback')`
    const guarded = (code) => w.push({ parts: ['try {', [line(code)], `} catch (error) {`, [line(`note('caught', error)`)], '}'] })
    const leaf = `${x}.detach().requiresGrad_()`
    const code = random.pick([
      `{ const p = ${leaf}; p.mul(2).registerHook(() => { ${thrown} }); p.mul(3).sum().backward(); note('gradient', p.grad) }`,
      `{ const p = ${leaf}; const q = p.mul(2); q.registerHook(() => { ${thrown} }); try { q.sum().backward() } finally { note('gradient', p.grad) } }`,
      `{ class Bad extends torch.autograd.Function { static forward(ctx, t) { return t.mul(2) } static backward() { ${thrown} } } const p = ${leaf}; try { Bad.apply(p).sum().backward() } finally { note('gradient', p.grad) } }`,
      `{ class Bad extends torch.autograd.Function { static forward(ctx, t) { t.mul(2); ${thrown} } } note('after', Bad.apply(${leaf})) }`,
      `for (const t of (function* () { yield ${x}.add(1); ${thrown} })()) note('item', t)`,
      `note('mapped', [1, 2, 3].map((k) => { if (k === 3) ${thrown}; return ${x}.mul(k) }))`,
      `noGrad(() => { ${x}.detach().mul(2).add_(1); ${thrown} })`,
    ])
    if (w.values(`(() => { try { ${code} } catch {} })()`) === null) return false
    guarded(code)
    return w.statement(`note('grad mode', isGradEnabled())`)
  },
}
