// What the host (Node, Deno, Bun, a browser) offers beside the language.

/** What the library uses of Node's process object. Written out, so that users' programs need no types of Node. */
interface HostProcess {
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly argv?: readonly string[]
  readonly version?: string
  readonly pid?: number
  cwd?(): string
  getBuiltinModule?(id: string): unknown
}

/** The process object of Node, Deno or Bun; undefined in a browser. */
export const hostProcess = (): HostProcess | undefined => globalThis.process

/** An environment variable; undefined if it is not set, if there is no environment (browsers), or if reading it is not allowed (Deno without --allow-env). */
export function environmentVariable(name: string): string | undefined {
  try {
    return hostProcess()?.env?.[name]
  } catch {
    return undefined
  }
}
