-- What the services' roles are beyond their rights. The parameter is the array of roles.
SELECT
    rolname AS role,
    rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls AS is_powerful,
    EXISTS (SELECT FROM pg_auth_members WHERE member = role.oid) AS is_member,
    EXISTS (
        SELECT FROM pg_class
        WHERE relowner = role.oid AND relnamespace = CAST('public' AS regnamespace)
    ) AS is_owner
FROM pg_roles AS role
WHERE rolname = ANY (CAST(:roles AS text[]))
