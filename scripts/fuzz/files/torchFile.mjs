// Files of torch.save for the fuzzer: a zip archive, in which a pickle builds dicts of tensors from the storages beside it.
import { mutateBytes, TEXTS } from './mutate.mjs'
import { joined, storedEntries, storedZip } from './storedZip.mjs'

const latin1 = (text) => new Uint8Array(Buffer.from(text, 'latin1'))
const word = (n) => String.fromCharCode(n & 255, (n >> 8) & 255, (n >> 16) & 255, (n >>> 24) & 255)

/** A text in a pickle. */
const text = (value) => `X${word(value.length)}${value}`
const integer = (n) => `J${word(n)}`
const tuple = (...items) => `(${items.join('')}t`
const dict = (...items) => `}(${items.join('')}u`
const storage = (type, key, count) => `${tuple(text('storage'), `ctorch\n${type}\n`, text(key), text('cpu'), integer(count))}Q`
const tensor = (of, offset, shape, strides) =>
  `ctorch._utils\n_rebuild_tensor_v2\n${tuple(of, integer(offset), tuple(...shape.map(integer)), tuple(...strides.map(integer)), '\x89', `ccollections\nOrderedDict\n)R`)}R`

/** Instructions, also those that the reader does not know, and pieces that use them. */
const PIECES = [
  ...'()]}tlasue0NbRQ.\x85\x86\x87\x88\x89\x93\x94',
  ...['K\x00', 'K\x01', 'K\xff', 'M\xff\xff', integer(-1), integer(2 ** 31 - 1), '\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f', 'G\x7f\xf8\0\0\0\0\0\0'],
  ...[
    'q\x00',
    'h\x00',
    'h\x01',
    `r${word(7)}`,
    `j${word(7)}`,
    '\x8c\x01a',
    'C\x02ab',
    `B${word(2)}ab`,
    '\x80\x02',
    '\x95\0\0\0\0\0\0\0\0',
    'i',
    'o',
    '2',
  ],
  ...[
    'ccollections\nOrderedDict\n',
    'ctorch\nFloatStorage\n',
    'ctorch\nSize\n',
    'cos\nsystem\n',
    'cbuiltins\neval\n',
    'ctorch._utils\n_rebuild_parameter\n',
  ],
  // Lists that hold each other, and what names of functions must not be.
  ...[
    `]q\x00h\x00a`,
    `]q\x00](h\x00h\x00eq\x00](h\x00h\x00eq\x00`,
    `${text('a')}]\x93`,
    `]${text('a')}\x93`,
    tuple(text('storage'), 'N', 'N', 'N', 'N'),
  ],
]

/** State dicts: one of all kinds of storages, one beside other things, with the extra data that PyTorch adds. */
export function seeds() {
  const floats = new Uint8Array(Float32Array.of(1, 2, 3, 4, 5, 6).buffer)
  const longs = new Uint8Array(BigInt64Array.of(7n, 8n).buffer)
  const storages = { 'archive/data/0': floats, 'archive/data/1': longs }
  const f = storage('FloatStorage', '0', 6)
  const l = storage('LongStorage', '1', 2)
  const state = dict(
    text('a.weight'),
    `${tensor(f, 0, [2, 3], [3, 1])}q\x00`,
    text('a.bias'),
    tensor(f, 2, [2, 2], [1, 2]),
    text('steps'),
    tensor(l, 1, [], []),
    text('tied'),
    'h\x00',
  )
  const order = { 'archive/byteorder': latin1('little') }
  const file = (pickle, more = {}) => storedZip({ 'archive/data.pkl': latin1(`\x80\x02${pickle}.`), ...more, ...storages })
  return [
    file(state, order),
    file(`ccollections\nOrderedDict\n)R(${text('w')}${tensor(f, 0, [6], [1])}u}(${text('_metadata')}Nub`),
    file(dict(text('p'), `ctorch._utils\n_rebuild_parameter\n${tuple(tensor(f, 1, [3], [2]), '\x88', 'ccollections\nOrderedDict\n)R')}R`), order),
  ]
}

/** A pickle with instructions put in, left out or repeated. */
function mutatePickle(dice, pickle) {
  let out = pickle
  for (let i = dice.chance(0.5) ? 1 : 1 + dice.below(5); i > 0; i--) {
    const at = dice.below(out.length + 1)
    if (dice.chance(0.3)) out = mutateBytes(dice, out)
    else if (dice.chance(0.1)) {
      // Long runs of one instruction.
      const run = dice.pick(PIECES).repeat(1 + dice.below(30_000))
      out = joined(out.subarray(0, at), latin1(run), out.subarray(at))
    } else if (dice.chance(0.2)) out = joined(out.subarray(0, at), latin1(text(dice.pick(TEXTS).replace(/[^\0-\xff]/g, '?'))), out.subarray(at))
    else out = joined(out.subarray(0, at), latin1(dice.pick(PIECES)), out.subarray(at + dice.below(3)))
  }
  return out
}

/** A mutant: of the bytes, of the list of entries, or of the pickle. */
export function mutate(dice, bytes) {
  if (dice.chance(0.25)) return mutateBytes(dice, bytes)
  const entries = storedEntries(bytes)
  const at = dice.below(entries.length)
  if (dice.chance(0.25)) {
    const [name, data] = entries[at]
    if (dice.chance(0.3)) entries.splice(at, 1)
    else if (dice.chance(0.4)) entries.push([name, data])
    else entries[at] = dice.chance(0.5) ? [dice.pick(TEXTS), data] : [name, mutateBytes(dice, data)]
    return storedZip(entries)
  }
  return storedZip(entries.map(([name, data]) => [name, name.endsWith('data.pkl') ? mutatePickle(dice, data) : data]))
}
