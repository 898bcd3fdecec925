// Values as the playground prints them: texts as they are, tensors as they print themselves, the rest as JavaScript would write it.

const isTensor = (value) => typeof value?.dtype === 'string' && Array.isArray(value.shape)

export function show(value, depth = 0) {
  if (typeof value === 'string') return depth === 0 ? value : JSON.stringify(value)
  if (value === null || typeof value !== 'object')
    return typeof value === 'function' ? nameOf(value) : typeof value === 'bigint' ? `${value}n` : String(value)
  if (value instanceof Error) return value.stack ?? String(value)
  if (isTensor(value)) return String(value)
  if (Array.isArray(value))
    return depth > 4
      ? '[…]'
      : bounded(
          value.slice(0, 100).map((item) => show(item, depth + 1)),
          value.length > 100,
          '[',
          ']',
        )
  if (ArrayBuffer.isView(value)) return `${value.constructor.name} ${show(Array.from(value), depth)}`
  if (value instanceof Map) return `Map ${show([...value], depth)}`
  if (value instanceof Set) return `Set ${show([...value], depth)}`
  const own = Object.getPrototypeOf(value)
  if (own !== Object.prototype && own !== null && own.toString !== Object.prototype.toString) return String(value)
  if (depth > 4) return '{…}'
  const items = Object.entries(value)
    .slice(0, 100)
    .map(([key, item]) => `${/^[\w$]+$/.test(key) ? key : JSON.stringify(key)}: ${show(item, depth + 1)}`)
  return bounded(items, Object.keys(value).length > 100, '{ ', ' }')
}

const nameOf = (fn) => (fn.toString === Function.prototype.toString ? `[function ${fn.name === '' ? '(anonymous)' : fn.name}]` : String(fn))

function bounded(items, isCut, open, close) {
  const all = isCut ? [...items, '…'] : items
  const line = `${open}${all.join(', ')}${close}`
  return line.length <= 100 || items.length === 0
    ? line
    : `${open.trim()}\n${all.map((item) => `  ${item.replaceAll('\n', '\n  ')}`).join(',\n')}\n${close.trim()}`
}
