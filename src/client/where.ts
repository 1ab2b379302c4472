import type * as queries from '../wire/query.js'

/** A condition on bodies of which nothing is known. */
type AnyCondition = NonNullable<queries.LatestQuery['where']>[number]

/** Levels of objects and arrays whose members are checked; a type may contain itself. */
type Levels = [1, 2, 3, 4, 5]

/**
 * Compares a field of the body with a literal of the same JSON type. The field is a dotted path, or a JSON Pointer (RFC
 * 6901) where it begins with `/`. Paths and values are checked against `T`, the type of the bodies, where it names its
 * members; pointers are not.
 */
export type WhereCondition<T = Record<string, unknown>> = string extends keyof T
  ? AnyCondition
  : [keyof T] extends [never]
    ? AnyCondition
    : MemberCondition<T, '', Levels> | (AnyCondition & { field: `/${string}` })

/** A condition on a member of `T`, or of what is in it. */
type MemberCondition<T, Prefix extends string, Left extends unknown[]> = T extends object
  ? {
      [K in keyof T & string]-?: Comparison<`${Prefix}${K}`, T[K]> | Within<T[K], `${Prefix}${K}.`, Left>
    }[keyof T & string]
  : never

/** A condition on what is in a value; its path begins with `Prefix`. */
type Within<V, Prefix extends string, Left extends unknown[]> = Left extends [unknown, ...infer Less]
  ? V extends readonly (infer I)[]
    ? Comparison<`${Prefix}${number}`, I> | Within<I, `${Prefix}${number}.`, Less>
    : MemberCondition<V, Prefix, Less>
  : never

type Comparison<Field extends string, V> =
  | {
      field: Field
      op: Exclude<AnyCondition['op'], 'in' | 'exists'>
      value: Exclude<V, undefined>
    }
  | { field: Field; op: 'in'; value: readonly Exclude<V, undefined>[] }
  | { field: Field; op: 'exists'; value: boolean }
