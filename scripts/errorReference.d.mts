export interface ErrorClass {
  readonly name: string
  readonly code: string | null
  readonly meaning: string | null
  readonly fix: string | null
  readonly from: string | null
  readonly file: string
}
export declare function errorClasses(): readonly ErrorClass[]
export declare function errorPage(): string
