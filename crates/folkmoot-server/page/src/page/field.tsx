import { type ReactNode, useId } from 'react';

/** A named field of a form; `children` makes the control that has the id. */
export function Field({ label, isInline = false, children }: { label: string; isInline?: boolean; children(id: string): ReactNode }) {
  const id = useId();
  return (
    <div className={isInline ? 'field inline' : 'field'}>
      <label htmlFor={id}>{label}</label>
      {children(id)}
    </div>
  );
}
