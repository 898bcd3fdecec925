// What the host (Node, Deno, Bun, a browser) offers beside the language.
import type { VariableName } from './variables.ts'

/** What the library uses of Node's process object. Written out, so that users' programs need no types of Node. */
interface HostProcess {
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly argv?: readonly string[]
  readonly execArgv?: readonly string[]
  readonly version?: string
  readonly pid?: number
  readonly ppid?: number
  cwd?(): string
  cpuUsage?(): { readonly user: number; readonly system: number }
  constrainedMemory?(): number
  kill?(pid: number, signal: string | number): boolean
  getBuiltinModule?(id: string): unknown
  on?(event: 'exit', callback: (code: number) => void): unknown
}

/** What the library does with the host, as Deno names it. Without a variable: the whole environment. */
type Permission =
  | { readonly name: 'env'; readonly variable?: string }
  | { readonly name: 'read'; readonly path: string }
  | { readonly name: 'run' }
  | { readonly name: 'sys'; readonly kind: string }

/** What the library uses of Deno.permissions. */
interface DenoPermissions {
  querySync?(what: Permission): { readonly state: string }
}

/** The process object of Node, Deno or Bun; undefined in a browser. */
export const hostProcess = (): HostProcess | undefined => globalThis.process

/** Whether something can be done without asking. Deno asks the user at the terminal for whatever no flag allows, and a library must not cause that. */
export function isAllowed(what: Permission): boolean {
  const deno: { readonly permissions?: DenoPermissions } | undefined = Reflect.get(globalThis, 'Deno')
  const status = deno?.permissions?.querySync?.(what)
  return status === undefined || status.state === 'granted'
}

/** An environment variable; undefined if it is not set, if there is no environment (browsers), or if reading it is not allowed (Deno without --allow-env). Names of tensorfx are those of variables.ts. */
export function environmentVariable<const N extends string>(name: N extends `TENSORFX_${string}` ? VariableName : N): string | undefined {
  try {
    return isAllowed({ name: 'env', variable: name }) ? hostProcess()?.env?.[name] : undefined
  } catch {
    return undefined
  }
}

let generatesCode: boolean | null = null

/**
 * Whether text can become a function here: a page's Content-Security-Policy without 'unsafe-eval', and Node's --disallow-code-generation-from-strings, forbid that. Asked
 * only when there is code to run, since a browser reports the attempt. A console message says once what runs instead.
 */
export function canGenerateCode(): boolean {
  if (generatesCode === null) {
    try {
      // oxlint-disable-next-line no-eval -- the question is whether this is allowed
      generatesCode = (0, eval)('true') === true
    } catch {
      generatesCode = false
      console.warn(
        "tensorfx: generated code is not allowed here (a Content-Security-Policy without 'unsafe-eval'). GraphModules run node by node, and compiled functions as prepared calls of their kernels; the results are the same. See docs/guide/csp.md.",
      )
    }
  }
  return generatesCode
}
