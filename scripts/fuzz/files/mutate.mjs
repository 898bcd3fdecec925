// Mutants: of bytes, and of values as JSON has them.

/** The property that a payload sets if it is run. */
export const MARK = '__tensorfxFuzzRan'

/** The file that a frame may name, and that must not be opened. */
export const CANARY = '/tensorfx-fuzz-canary/secret.txt'

const RUN = `globalThis.${MARK}=true`

/** Texts that are names of something, or would be code if they left their quotes. */
export const TEXTS = [
  ...[
    '',
    ' ',
    '.',
    'a.b.c',
    '__proto__',
    'constructor',
    'prototype',
    'toString',
    'valueOf',
    'hasOwnProperty',
    '__proto__.forward',
    'constructor.prototype.polluted',
  ],
  ...[
    'forward',
    'call',
    'graph',
    'code',
    'meta',
    'training',
    'className',
    'storage',
    'realize',
    'dispose',
    '__call__',
    'apply',
    'bind',
    'length',
    'name',
    'then',
    'toJSON',
  ],
  ...["'", '"', '`', '\\', '\n', '\r', '\u2028', '\u2029', '\u0000', '\ud800', '*/', '/*', '//', '${', '</script>', '<!--', '-0', '1e999', 'NaN'],
  ...[
    `');${RUN};('`,
    `");${RUN};("`,
    `\n${RUN}\n`,
    `\u2028${RUN}\u2028`,
    `*/${RUN}/*`,
    `\`;${RUN};\``,
    `\${${RUN}}`,
    `x=${RUN}`,
    `]:${RUN},[`,
    `){${RUN}}function f(`,
    `'];${RUN};this['`,
  ],
  ...[
    `(()=>{${RUN}})()`,
    RUN,
    'torch.relu',
    'torch.add',
    'torch.zeros',
    'torch._assert(',
    'builtins.getattr',
    'operator.getitem',
    'operator.setitem',
    'operator.add',
  ],
  ...[
    'torch.ops.higher_order.cond',
    'torch.ops.higher_order.map_impl',
    'builtins.Map',
    'pytree',
    'inSpec',
    'torch',
    'operator',
    'this',
    'await',
    CANARY,
    `file://${CANARY}`,
    '/dev/zero',
  ],
]

const NUMBERS = [0, -0, 1, -1, 2, 0.5, -7, 255, 256, 65536, 2 ** 31 - 1, 2 ** 31, 2 ** 32, 1e9, 1e15, 2 ** 53 - 1, 2 ** 53, 1e300, Number.MIN_VALUE]

const MARKS = ['$node', '$number', '$tuple', '$map', '$slice', '$object']

const isObject = (value) => typeof value === 'object' && value !== null

/** A value that has nothing to do with the old one. */
function anyValue(dice, depth = 0) {
  switch (dice.below(depth > 2 ? 5 : 9)) {
    case 0:
      return null
    case 1:
      return dice.chance(0.5)
    case 2:
      return dice.pick(NUMBERS)
    case 3:
    case 4:
      return dice.pick(TEXTS)
    case 5:
      return Array.from({ length: dice.below(4) }, () => anyValue(dice, depth + 1))
    case 6:
      return new Entries(Array.from({ length: dice.below(3) }, () => [dice.pick(TEXTS), anyValue(dice, depth + 1)]))
    case 7:
      return new Entries([[dice.pick(MARKS), anyValue(dice, depth + 1)]])
    default:
      return nested(dice)
  }
}

/** Something deep. */
function nested(dice) {
  let value = 1
  const asTuple = dice.chance(0.3)
  for (let i = dice.below(3) === 0 ? 700 : dice.below(300); i > 0; i--) value = asTuple ? new Entries([['$tuple', [value]]]) : [value]
  return value
}

/** An object by its entries, which may have a key twice, or the key `__proto__`. */
export class Entries {
  constructor(entries) {
    this.entries = entries
  }
}

/** A value as JSON text parses to, with Entries for objects. */
export function toEntries(value) {
  if (Array.isArray(value)) return value.map(toEntries)
  return isObject(value) && !(value instanceof Entries) && !(value instanceof Uint8Array)
    ? new Entries(Object.entries(value).map(([key, item]) => [key, toEntries(item)]))
    : value
}

/** The JSON of a value with Entries. Recursion would overflow the stack for deep values. */
export function toText(value) {
  const out = []
  const todo = [value]
  const say = (text) => ({ say: text })
  while (todo.length > 0) {
    const item = todo.pop()
    if (isObject(item) && 'say' in item) out.push(item.say)
    else if (Array.isArray(item)) {
      todo.push(say(']'))
      for (let i = item.length - 1; i >= 0; i--) todo.push(item[i], say(i === 0 ? '' : ','))
      todo.push(say('['))
    } else if (item instanceof Entries) {
      todo.push(say('}'))
      for (let i = item.entries.length - 1; i >= 0; i--)
        todo.push(item.entries[i][1], say(`${i === 0 ? '' : ','}${JSON.stringify(item.entries[i][0])}:`))
      todo.push(say('{'))
    } else if (Object.is(item, -0)) out.push('-0')
    else out.push(JSON.stringify(item) ?? 'null')
  }
  return out.join('')
}

/** Every place in a value: its holder and its key there. */
function places(root) {
  const found = []
  const todo = [root]
  while (todo.length > 0 && found.length < 20_000) {
    const item = todo.pop()
    const parts = Array.isArray(item) ? item : item instanceof Entries ? item.entries.map(([, part]) => part) : []
    for (const [key, part] of parts.entries()) {
      found.push([item, key])
      if (isObject(part)) todo.push(part)
    }
  }
  return found
}

const partAt = ([holder, key]) => (Array.isArray(holder) ? holder[key] : holder.entries[key][1])
function setPart([holder, key], value) {
  if (Array.isArray(holder)) holder[key] = value
  else holder.entries[key][1] = value
}

const copy = (value) =>
  Array.isArray(value) ? value.map(copy) : value instanceof Entries ? new Entries(value.entries.map(([key, item]) => [key, copy(item)])) : value

/** A value of the same kind, slightly or wildly different. */
function near(dice, value) {
  if (typeof value === 'number') return dice.chance(0.4) ? dice.pick(NUMBERS) : value + dice.pick([1, -1, 2, -2, 0.5, 1e6, -1e6])
  if (typeof value === 'boolean') return !value
  if (typeof value === 'string') {
    if (dice.chance(0.6)) return dice.pick(TEXTS)
    const at = dice.below(value.length + 1)
    return value.slice(0, at) + dice.pick(TEXTS) + value.slice(at + dice.below(3))
  }
  return anyValue(dice)
}

/** Changes one place of a value in place. Returns the value, or another if the whole was replaced. */
function mutateOnce(dice, root) {
  const all = places(root)
  if (all.length === 0 || dice.chance(0.005)) return anyValue(dice)
  const place = dice.pick(all)
  const [holder, key] = place
  const items = Array.isArray(holder) ? holder : holder.entries
  switch (dice.below(9)) {
    case 0:
      items.splice(key, 1)
      break
    case 1:
      items.splice(key, 0, copy([items[key]])[0])
      break
    case 2:
      setPart(place, anyValue(dice))
      break
    case 3: {
      const other = partAt(dice.pick(all))
      setPart(place, copy(other))
      break
    }
    case 4:
      if (holder instanceof Entries) items[key] = [dice.pick(TEXTS), items[key][1]]
      else items.push(anyValue(dice))
      break
    case 5: {
      const swap = dice.below(items.length)
      ;[items[key], items[swap]] = [items[swap], items[key]]
      break
    }
    default:
      setPart(place, near(dice, partAt(place)))
  }
  return root
}

/** A mutant of a value with Entries. */
export function mutateValue(dice, value) {
  let mutant = copy(value)
  for (let i = dice.chance(0.6) ? 1 : 1 + dice.below(5); i > 0; i--) mutant = mutateOnce(dice, mutant)
  return mutant
}

/** A mutant of bytes. */
export function mutateBytes(dice, bytes) {
  let out = Uint8Array.from(bytes)
  for (let i = dice.chance(0.6) ? 1 : 1 + dice.below(8); i > 0; i--) {
    if (out.length === 0) return out
    const at = dice.below(dice.chance(0.5) ? Math.min(out.length, 600) : out.length)
    switch (dice.below(7)) {
      case 0:
        out[at] ^= 1 << dice.below(8)
        break
      case 1:
        out[at] = dice.pick([0, 1, 32, 34, 44, 48, 57, 58, 91, 92, 93, 123, 125, 127, 128, 255])
        break
      case 2:
        out = out.slice(0, at)
        break
      case 3: {
        const end = Math.min(out.length, at + 1 + dice.below(64))
        out = Uint8Array.from([...out.subarray(0, at), ...out.subarray(end)])
        break
      }
      case 4: {
        const piece = out.slice(at, at + 1 + dice.below(64))
        const to = dice.below(out.length)
        out = Uint8Array.from([...out.subarray(0, to), ...piece, ...out.subarray(to)])
        break
      }
      case 5: {
        const text = new TextEncoder().encode(dice.pick(TEXTS))
        out = Uint8Array.from([...out.subarray(0, at), ...text, ...out.subarray(at + dice.below(4))])
        break
      }
      default:
        for (let k = at; k < Math.min(out.length, at + 8); k++) out[k] = dice.below(256)
    }
  }
  return out
}
