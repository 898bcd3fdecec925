// Types for tests.
export declare const DISTINCT: ReadonlySet<string>
export declare const SHARED: ReadonlySet<string>
export declare const COMMON: ReadonlySet<string>
export declare const LISTS: ReadonlySet<string>
