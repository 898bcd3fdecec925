// Lets Node itself load the modules of src/, without their types, in a process that test files share. vitest would send each module through Vite, and every use of an imported name in it
// would be a call of a getter. Tests still go through Vite. This must come before what imports a source, and files share a process: Node keeps hooks, so they are registered once.
import { register } from 'node:module'

const REGISTERED = Symbol.for('tensorfx.test.sources')
if (!Reflect.has(globalThis, REGISTERED)) {
  register('./sourceHooks.mjs', import.meta.url)
  Reflect.set(globalThis, REGISTERED, true)
}
