// Events and logs without what differs from run to run: times, names of runs, folders, and numbers that count up in a process.
import { currentEngine } from '../../src/kernels/index.ts'
import type { CompileEvent } from 'tensorfx/debug'

/** Replaces numbers by their order of appearance, kind by kind. */
export class Numbers {
  readonly #known = new Map<string, string>()

  of(kind: string, value: string | number): string {
    const key = `${kind} ${value}`
    const known = this.#known.get(key) ?? String([...this.#known.keys()].filter((other) => other.startsWith(`${kind} `)).length + 1)
    this.#known.set(key, known)
    return known
  }

  /** A text with the numbers in names of graphs and programs replaced. */
  text(text: string): string {
    return text
      .replaceAll(/__compiled_fn_(\d+)/g, (_, n: string) => `__compiled_fn_${this.of('fn name', n)}`)
      .replaceAll(/compiled_graph_(\d+)/g, (_, n: string) => `compiled_graph_${this.of('program', n)}`)
      .replaceAll(/(?:file:\/\/)?(?:[A-Za-z]:)?[\w./-]*\/test\/events\//g, '')
      .replaceAll(/\d+\.\d\d ms/g, '? ms')
  }
}

const frame = (value: object): string => `${Reflect.get(value, 'file')}:${Reflect.get(value, 'line')} ${Reflect.get(value, 'fn')}`

/** An event as lines: its kind and place, and then its fields. */
export function describeEvent(event: CompileEvent, numbers: Numbers): string {
  const { id: _id, run: _run, time: _time, kind, fn, call, graph, ...fields } = event
  const place = Object.entries({ fn, call, graph }).flatMap(([name, value]) => (value === null ? [] : [`${name} ${numbers.of(name, value)}`]))
  const text = (key: string, value: unknown): string => {
    if (key === 'milliseconds') return '?'
    // Hosts differ in it.
    if (key === 'engine' && value === currentEngine()) return "the host's"
    if ((key === 'parent' || key === 'outer') && typeof value === 'number') return numbers.of(key === 'parent' ? 'graph' : 'call', value)
    // Generated code has goldens of its own.
    if (typeof value === 'string') return key === 'text' || key === 'source' ? value.replace(/\n[^]*/, ' …') : value
    if (Array.isArray(value)) return `[${value.map((item) => text('', item)).join(', ')}]`
    if (typeof value !== 'object' || value === null) return String(value)
    if ('line' in value) return frame(value)
    return `{ ${Object.entries(value)
      .map(([name, item]) => `${name}: ${text(name, item)}`)
      .join(', ')} }`
  }
  const lines = Object.entries(fields).map(([name, value]) => `  ${name}: ${text(name, value)}`)
  return numbers.text([[kind, ...place].join(' '), ...lines].join('\n'))
}
