// A store of results in memory, as files hold them: what is found is a copy.
import { deserialize, serialize } from 'node:v8'

/** The store, and how many graphs were found and kept. */
export function memoryStore() {
  const results = new Map()
  const counts = { found: 0, kept: 0 }
  const count = (kind, what) => (counts[what] += kind === 'graph' ? 1 : 0)
  const keep = (kind, text, result) => {
    count(kind, 'kept')
    results.set(`${kind} ${text}`, serialize(result))
  }
  const store = {
    find(kind, text) {
      const bytes = results.get(`${kind} ${text}`)
      if (bytes === undefined) return undefined
      count(kind, 'found')
      return deserialize(bytes)
    },
    keep,
    keepLater(kind, text, make) {
      const result = make()
      if (result !== null) keep(kind, text, result)
    },
  }
  return { store, counts, results }
}
