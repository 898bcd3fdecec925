// Kinds of statements that decide what runs: branches and loops on values, exceptions, generators, printing, arguments in structures, changing shapes.
import { line } from '../program.mjs'

/** A condition on a tensor's data. */
function condition(w) {
  const x = w.tensor((name) => w.value(name).numel > 0)
  if (x === undefined) return null
  const code = w.random.pick([
    `${x}.sum().item() > 0.37`,
    `${x}.flatten()[0].item() < 0.2`,
    `${x}.gt(0.1).any().item()`,
    `Number(${x}.amax().item()) > 1.3`,
    `${x}.flatten().toArray()[0] > 0`,
  ])
  return w.values(code) === null ? null : code
}

/** Some statements on a variable of the outer scope, as a list. */
function part(w, variable, count) {
  return w.inside([], () => {
    w.more(count)
    const y = w.tensor((name) => w.shape(name).join() === w.shape(variable).join() && w.dtype(name) === w.dtype(variable) && name !== variable)
    w.statement(`${variable} = ${y === undefined ? `${variable}.mul(2)` : `${variable}.add(${y})`}`)
  })
}

export const branches = {
  write(w) {
    const { random } = w
    const test = condition(w)
    const x = w.float()
    if (test === null || x === undefined || w.depth > 1) return false
    const variable = w.define(`${x}.mul(1)`, [x], 'let')
    if (variable === null) return false
    w.depth = (w.depth ?? 0) + 1
    try {
      const kind = random.int(4)
      if (kind === 0) w.push({ parts: [`if (${test}) {`, part(w, variable, 1 + random.int(2)), '}'] })
      else if (kind === 1) w.push({ parts: [`if (${test}) {`, part(w, variable, 1), '} else {', part(w, variable, 1), '}'] })
      else if (kind === 2) {
        const i = w.name('i')
        w.assignEach(
          i,
          Array.from({ length: w.callCount }, () => '1'),
        )
        w.push({ parts: [`for (let ${i} = 0; ${i} < 3 && (${i} === 0 || ${test}); ${i}++) {`, part(w, variable, 1 + random.int(2)), '}'] })
      } else w.statement(`note('seen', ${test})`)
    } finally {
      w.depth--
    }
    return true
  },
}

export const printing = {
  write(w) {
    const x = w.tensor()
    return w.statement(
      w.random.pick([`note('seen', ${x})`, `note('text', String(${x}))`, `note('shape', ${x}.shape.join())`, `note('array', ${x}.toArray())`]),
    )
  },
}

/** An expression that throws when it runs, or when its data are looked at. */
function failing(w) {
  const x = w.tensor()
  return w.random.pick([
    `${x}.view([7, 11])`,
    `${x}.add(data([13], 1))`,
    `${x}.matmul(data([17, 19], 1))`,
    `${x}.select(9, 0)`,
    `${x}.flatten().gather(0, torch.tensor([1000]).long())`,
    `torch.nn.functional.crossEntropy(data([2, 3], 1), torch.tensor([1, 9]).long())`,
    `torch.nn.functional.embedding(torch.tensor([77]).long(), data([3, 2], 1))`,
    `${x}.long().exp_()`,
    `${x}.requiresGrad_().add_(1)`,
    `torch.nn.functional.oneHot(torch.tensor([5]).long(), 3)`,
    `${x}.flatten().item(9)`,
    `torch.linalg.${w.random.pick(['inv', 'cholesky'])}(torch.zeros([2, 2]).mul(${x}.float().sum()))`,
    `torch.linalg.solve(torch.zeros([2, 2]), ${x}.float().sum().expand([2]))`,
    `torch.poisson(${x}.float().mul(0).sub(1))`,
    `torch.multinomial(${x}.float().mul(0).flatten(), 1)`,
    `torch.bincount(${x}.long().mul(0).sub(1).flatten())`,
    `torch.repeatInterleave(data([1], 1), ${x}.flatten().long().mul(0).sub(1).slice(0, 0, 1))`,
  ])
}

export const exceptions = {
  write(w) {
    const { random } = w
    if (w.depth > 1) return false
    w.depth = (w.depth ?? 0) + 1
    try {
      const kind = random.int(4)
      if (kind === 3) {
        const test = condition(w)
        if (test === null) return false
        const code = `if (${test}) throw new Error('${w.name('stop')}')`
        w.push(line(code))
        return true
      }
      const body = w.inside([], () => {
        w.more(random.int(3))
        w.push(line(kind === 0 ? `throw new RangeError('thrown here')` : random.chance(0.5) ? failing(w) : `note('failing', ${failing(w)})`))
        if (random.chance(0.5)) w.push(line(`note('after', 1)`))
      })
      const handler = [line(`note('caught', error)`)]
      const end = random.chance(0.3) ? ['} finally {', [line(`note('finally', 1)`)], '}'] : ['}']
      if (random.chance(0.85)) w.push({ parts: ['try {', body, '} catch (error) {', handler, ...end] })
      else for (const statement of body) w.push(statement)
      return true
    } finally {
      w.depth--
    }
  },
}

export const generators = {
  write(w) {
    const { random } = w
    const x = w.tensor()
    const y = w.tensor((name) => w.shape(name).join() === w.shape(x).join()) ?? x
    const g = w.name('g')
    return random.pick([
      () => {
        const code = `function* ${g}() { let t = ${x}; for (let i = 0; i < 3; i++) { t = t.${random.pick(['add(1)', `mul(0.5)`, `add(${y})`])}; yield t } }`
        w.push(line(code))
        return w.define(`[...(${code.replace(`function* ${g}`, 'function* ')})()].reduce((p, q) => p.add(q))`, [x]) !== null
      },
      () => w.define(`[...${x}].reduce((p, q) => p.add(q))`, [x]) !== null,
      () => w.define(`torch.stack([${x}, ${y}].map((t) => t.mul(2)))`, [x]) !== null,
      () => w.define(`range(3).reduce((t, i) => t.add(i), ${x})`, [x]) !== null,
      () => w.define(`new Map([['p', ${x}], ['q', ${y}]]).get('p').add(1)`, [x]) !== null,
      () => w.define(`((t) => { let s = t; for (const r of t.flatten()) s = s.add(r); return s })(${x})`, [x]) !== null,
    ])()
  },
}

export const structures = {
  parameters(w) {
    const { random, program } = w
    const shape = random.pick(['2, 3', '3', ''])
    const forms = [
      (k) => `{ x: data([${shape}], ${k}), s: 2 }`,
      (k) => `{ x: data([${shape}], ${k}), s: 3, rest: [data([3], ${k})] }`,
      (k) => `{ s: 2, x: data([${shape}], ${k}) }`,
      (k) => `{ x: data([${shape}], ${k}), s: 2, name: 'other' }`,
    ]
    const fixed = random.chance(0.5)
    const values = program.calls.map((_, i) => (fixed ? forms[0] : random.pick(forms))(i + 1))
    program.params.push('o')
    program.calls.forEach((call, i) => call.list.push(values[i]))
    w.assignEach(
      'o',
      values.map((v) => `(${v})`),
    )
    if (random.chance(0.3)) {
      const lengths = program.calls.map(() => 1 + random.int(2))
      const lists = lengths.map((n) => `[${Array.from({ length: n }, (_, i) => `data([${shape}], ${i})`).join(', ')}]`)
      program.params.push('list')
      program.calls.forEach((call, i) => call.list.push(lists[i]))
      w.assignEach('list', lists)
      w.state.list = 'list'
    }
  },
  write(w) {
    const { random, state } = w
    const x = w.tensor()
    return (
      random.pick([
        () => w.define(`o.x.mul(o.s)`, ['o.x']),
        () => w.define(`${x}.add(o.x)`, [x, 'o.x']),
        () => w.define(`Object.values(o).reduce((t, v) => (v instanceof Tensor ? t.add(v) : t), ${x})`, [x]),
        () => w.define(`('name' in o ? ${x}.mul(2) : ${x})`, [x]),
        () => (state.list === undefined ? null : w.define(`list.reduce((p, q) => p.add(q))`, ['list[0]'])),
        () => (!w.traced && w.statement(`o.extra = ${x}`) ? 1 : null),
        () => (!w.traced && w.statement(`o.x = o.x.mul(2)`) ? 1 : null),
      ])() !== null
    )
  },
  result(w) {
    const [x, y] = [w.tensor(), w.tensor()]
    return w.random.pick([
      `{ x: ${x}, list: [${y}, ${x}], n: 3 }`,
      `[${x}, [${y}], null, 'text', 1.5]`,
      `new Map([['x', ${x}], ['y', [${y}]]])`,
      `[${x}, ${x}, a]`,
      `[a, ${x}]`,
      `{ o, y: ${y} }`,
      undefined,
    ])
  },
}

export const shapes = {
  tensors(w, list) {
    const sizes = Array.from({ length: w.callCount }, () => 1 + w.random.int(6))
    for (const t of list) if (t.shape.length > 0) t.shapes = sizes.map((n) => [n, ...t.shape.slice(1)])
  },
}

export const zeroSize = {
  tensors(w, list) {
    const { random } = w
    list.forEach((t, i) => {
      if (i > 0 && random.chance(0.5)) return
      const shape = t.shape.length === 0 ? [2] : t.shape
      const empty = shape.with(random.int(shape.length), 0)
      if (random.chance(0.5)) t.shape = empty
      else t.shapes = Array.from({ length: w.callCount }, () => (random.chance(0.5) ? empty : shape))
    })
  },
  write(w) {
    const x = w.tensor()
    return w.random.pick([
      () => w.define(`torch.cat([${x}.flatten(), data([0], 1)])`, [x]) !== null,
      () => w.define(`${x}.slice(0, 1, 1)`, [x]) !== null,
      () => w.define(`torch.zeros([0, 3]).sum(0)`) !== null,
      () => w.define(`${x}.sum()`, [x]) !== null,
      () => w.define(`data([2, 0], 1).matmul(data([0, 3], 1))`) !== null,
    ])()
  },
}
